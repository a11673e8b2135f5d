//! The codes that an error may have (section 5.1).

use syn::parse::{Parse, ParseStream};
use syn::{Error, Expr, ExprLit, ExprUnary, Lit, Result, UnOp};

/// The code of an error, and its expression for compile errors.
pub(super) struct DeclaredCode {
    pub(super) value: i64,
    pub(super) written: Expr,
}

impl Parse for DeclaredCode {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let expression: Expr = input.parse()?;
        let Some(value) = integer(&expression) else {
            return Err(Error::new_spanned(expression, "a code must be an integer literal"));
        };
        if is_allowed(value) {
            return Ok(Self { value, written: expression });
        }
        let text = "the specification reserves the codes -32768 to -32000; a method may use -32602 \
                    (Invalid params), -32603 (Internal error) and -32099 to -32000";
        Err(Error::new_spanned(expression, text))
    }
}

/// Whether a method may use the code. The other reserved codes report that no method was called.
fn is_allowed(code: i64) -> bool {
    match code {
        -32602 | -32603 | -32099..=-32000 => true,
        -32768..=-32000 => false,
        _ => true,
    }
}

fn integer(expression: &Expr) -> Option<i64> {
    match expression {
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => number.base10_parse().ok(),
        Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr, .. }) => match &**expr {
            Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => {
                format!("-{}", number.base10_digits()).parse().ok()
            }
            _ => None,
        },
        _ => None,
    }
}
