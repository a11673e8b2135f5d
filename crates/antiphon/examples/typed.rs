//! One trait is the contract of a service and of its typed client. A second contract, in the other
//! direction, lets the service report progress to its caller.
//!
//! `cargo run -p antiphon --example typed`

use antiphon::{CallError, Client, Context, RpcError, Server};

#[antiphon::rpc(namespace = "math", separator = ".")]
trait Math {
    /// Subtracts one number from another.
    async fn subtract(&self, minuend: i64, subtrahend: i64) -> Result<i64, MathError>;

    /// Returns the sum from one to a number, and reports each step.
    async fn sum_to(
        &self,
        cx: Context,
        last: u32,
        #[param(default = 1)] step: u32,
    ) -> Result<u64, MathError>;
}

/// The methods of the caller.
#[antiphon::rpc]
trait Progress {
    /// Reports progress.
    #[notification]
    async fn progress(&self, done: u32, of: u32);
}

#[derive(Debug, RpcError)]
enum MathError {
    #[rpc(code = -32050, message = "the result is out of range")]
    Overflow,
    #[rpc(code = -32051, message = "the step is zero")]
    Step { step: u32 },
    #[rpc(transparent)]
    Caller(CallError),
}

struct Calculator;

impl Math for Calculator {
    async fn subtract(&self, minuend: i64, subtrahend: i64) -> Result<i64, MathError> {
        minuend.checked_sub(subtrahend).ok_or(MathError::Overflow)
    }

    async fn sum_to(&self, cx: Context, last: u32, step: u32) -> Result<u64, MathError> {
        if step == 0 {
            return Err(MathError::Step { step });
        }
        let caller = ProgressClient::new(cx.peer().map_err(MathError::Caller)?);
        let mut sum = 0;
        let mut number = 1;
        while number <= last {
            sum += u64::from(number);
            caller.progress(number, last).await.map_err(MathError::Caller)?;
            number = number.saturating_add(step);
        }
        Ok(sum)
    }
}

struct Screen;

impl Progress for Screen {
    async fn progress(&self, done: u32, of: u32) {
        println!("{done} of {of}");
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::bind("tcp://127.0.0.1:0").await?;
    let endpoint = server.endpoint().clone();
    tokio::spawn(server.serve(Calculator.into_router()));

    let client = Client::builder().handler(Screen.into_router()).connect(&endpoint).await?;
    let math = MathClient::new(&client);
    println!("42 - 23 = {}", math.subtract(42, 23).await?);
    println!("1 + 3 + 5 = {}", math.sum_to(5, 2).await?);
    if let Err(error) = math.sum_to(5, 0).await {
        println!("{error}: {:?}", error.as_error::<MathError>());
    }
    Ok(())
}
