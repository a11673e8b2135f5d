//! The questions of one modern request: what its handler asks the client, and what the client has answered.
//!
//! A modern server cannot call its client. So the request ends with the questions, and the client repeats it with the
//! answers. A question is a future: it is ready if its answer is there. Otherwise it waits, and the request ends as
//! soon as its handler waits for a question. Questions that wait at the same time are asked together. In a task the
//! handler keeps waiting, and the client answers there.

use std::collections::{HashMap, HashSet};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context as Poller, Poll, Waker};

use antiphon::CallError;
use serde_json::value::RawValue;

use super::request_state::RequestState;

/// The largest number of questions that one request asks.
const MAX_QUESTIONS: usize = 64;

tokio::task_local! {
    /// The steps that run, which are part of the keys of the questions in them. A later round skips a finished step, and
    /// the questions after it keep their keys.
    static STEPS: String;
}

/// Runs a step.
pub(super) async fn within_step<T>(key: &str, step: impl Future<Output = T>) -> T {
    STEPS.scope(format!("{}{key}/", current_steps()), step).await
}

fn current_steps() -> String {
    STEPS.try_with(String::clone).unwrap_or_default()
}

/// The questions and answers of one request.
#[derive(Default)]
pub(crate) struct Questions(Mutex<QuestionsState>);

#[derive(Default)]
struct QuestionsState {
    answers: HashMap<String, Box<RawValue>>,
    /// The keys of the answers that the handler has asked for. The client may send others, which nobody keeps.
    used: HashSet<String>,
    /// The questions that a legacy client could not answer, until their askers know.
    failures: HashMap<String, CallError>,
    steps: Vec<(String, Box<RawValue>)>,
    /// The questions without an answer, in the order in which they were asked.
    open: Vec<OpenQuestion>,
    /// How many questions of each method have no key of their own, inside of each step and outside.
    unnamed: HashMap<(String, &'static str), usize>,
    rounds: u32,
    /// Grows with each change of the open questions.
    version: u64,
    /// Wakes whoever drives the handler.
    driver: Option<Waker>,
}

struct OpenQuestion {
    key: String,
    method: &'static str,
    params: Box<RawValue>,
    asker: Waker,
}

/// One question as the client gets it.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) key: String,
    pub(crate) method: &'static str,
    pub(crate) params: Box<RawValue>,
}

impl Questions {
    /// Starts with what an earlier round has learned, and with the answers of this one. An answer that the handler has
    /// used already stays: a client must not change it after a step that must run once.
    pub(crate) fn resumed(state: RequestState, answers: HashMap<String, Box<RawValue>>) -> Self {
        let RequestState { answers: earlier, steps, rounds, handler: _ } = state;
        let answers = answers.into_iter().chain(earlier).collect();
        Self(Mutex::new(QuestionsState { answers, steps, rounds, ..Default::default() }))
    }

    /// Adds answers to open questions, and wakes their askers. Other answers are dropped.
    pub(crate) fn answer_open(&self, mut answers: HashMap<String, Box<RawValue>>) {
        self.close(|state, question| match answers.remove(&question.key) {
            Some(answer) => state.answers.insert(question.key.clone(), answer).is_none(),
            None => false,
        });
    }

    /// Fails an open question, and wakes its asker.
    pub(crate) fn fail_open(&self, key: &str, error: CallError) {
        let mut error = Some(error);
        self.close(|state, question| match error.take_if(|_| question.key == key) {
            Some(error) => state.failures.insert(question.key.clone(), error).is_none(),
            None => false,
        });
    }

    /// Closes the open questions that `is_closed` selects.
    fn close(&self, mut is_closed: impl FnMut(&mut QuestionsState, &OpenQuestion) -> bool) {
        let mut state = self.state();
        let (closed, open): (Vec<_>, Vec<_>) = std::mem::take(&mut state.open)
            .into_iter()
            .partition(|question| is_closed(&mut state, question));
        state.open = open;
        let driver = state.change(!closed.is_empty());
        drop(state);
        closed.into_iter().map(|question| question.asker).chain(driver).for_each(Waker::wake);
    }

    /// The open questions, and the number of changes so far.
    pub(crate) fn open(&self) -> (u64, Vec<Asked>) {
        let state = self.state();
        (state.version, state.open.iter().map(OpenQuestion::asked).collect())
    }

    /// Wakes the poller at the next change. Returns the number of changes so far.
    pub(crate) fn watch(&self, poller: &Poller<'_>) -> u64 {
        let mut state = self.state();
        state.driver = Some(poller.waker().clone());
        state.version
    }

    /// Frees the memory of everything that was asked and answered.
    pub(crate) fn clear(&self) {
        let mut state = self.state();
        state.answers = HashMap::new();
        state.failures = HashMap::new();
        state.steps = Vec::new();
    }

    /// The key of a question that has none: the same one each time that the handler runs.
    pub(crate) fn next_key(&self, method: &'static str) -> String {
        let steps = current_steps();
        let mut state = self.state();
        let count = state.unnamed.entry((steps.clone(), method)).or_default();
        *count += 1;
        format!("{steps}{}-{count}", method.split('/').next().unwrap_or(method))
    }

    /// Asks. Ready when the answer is there.
    pub(crate) fn ask(
        self: &Arc<Self>,
        key: String,
        method: &'static str,
        params: Box<RawValue>,
    ) -> Question {
        Question { questions: self.clone(), key, method, params }
    }

    /// The result of a step that an earlier round has finished.
    pub(crate) fn step(&self, key: &str) -> Option<Box<RawValue>> {
        let state = self.state();
        state.steps.iter().find(|(known, _)| known == key).map(|(_, result)| result.clone())
    }

    /// Remembers the result of a step for the next round.
    pub(crate) fn finish_step(&self, key: String, result: Box<RawValue>) {
        self.state().steps.push((key, result));
    }

    /// The questions that wait for an answer. Otherwise the poller is woken by the next one.
    pub(crate) fn poll_open(&self, poller: &Poller<'_>) -> Poll<Vec<Asked>> {
        let mut state = self.state();
        if state.open.is_empty() {
            state.driver = Some(poller.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(state.open.iter().map(OpenQuestion::asked).collect())
    }

    /// Begins the next round. Returns its number.
    pub(crate) fn next_round(&self) -> u32 {
        let mut state = self.state();
        state.rounds += 1;
        state.rounds
    }

    /// What a handler must know that runs again.
    pub(crate) fn learned(&self) -> RequestState {
        let state = self.state();
        let used = state.answers.iter().filter(|(key, _)| state.used.contains(*key));
        let mut answers: Vec<_> = used.map(|(key, answer)| (key.clone(), answer.clone())).collect();
        answers.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        RequestState { answers, steps: state.steps.clone(), rounds: state.rounds, handler: None }
    }

    fn state(&self) -> MutexGuard<'_, QuestionsState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QuestionsState {
    /// Notes a change of the open questions. Returns whom to wake.
    fn change(&mut self, is_changed: bool) -> Option<Waker> {
        if !is_changed {
            return None;
        }
        self.version += 1;
        self.driver.take()
    }
}

impl OpenQuestion {
    fn asked(&self) -> Asked {
        Asked { key: self.key.clone(), method: self.method, params: self.params.clone() }
    }
}

/// One question, until its answer is there.
pub(crate) struct Question {
    questions: Arc<Questions>,
    key: String,
    method: &'static str,
    params: Box<RawValue>,
}

/// The reason why a question has no answer.
#[derive(Debug)]
pub(crate) enum Unanswered {
    /// The handler has asked more questions at once than a request may.
    TooMany,
    /// The call to a legacy client failed.
    Failed(CallError),
}

impl Future for Question {
    type Output = Result<Box<RawValue>, Unanswered>;

    fn poll(self: Pin<&mut Self>, poller: &mut Poller<'_>) -> Poll<Self::Output> {
        let mut state = self.questions.state();
        if let Some(answer) = state.answers.get(&self.key).cloned() {
            state.used.insert(self.key.clone());
            return Poll::Ready(Ok(answer));
        }
        if let Some(error) = state.failures.remove(&self.key) {
            return Poll::Ready(Err(Unanswered::Failed(error)));
        }
        let asker = poller.waker();
        if let Some(open) = state.open.iter_mut().find(|open| open.key == self.key) {
            open.asker.clone_from(asker);
            return Poll::Pending;
        }
        if state.open.len() >= MAX_QUESTIONS {
            return Poll::Ready(Err(Unanswered::TooMany));
        }
        state.open.push(OpenQuestion {
            key: self.key.clone(),
            method: self.method,
            params: self.params.clone(),
            asker: asker.clone(),
        });
        let driver = state.change(true);
        drop(state);
        if let Some(driver) = driver {
            driver.wake();
        }
        Poll::Pending
    }
}

impl Drop for Question {
    /// A question that nobody waits for any more is not asked.
    fn drop(&mut self) {
        let mut state = self.questions.state();
        state.failures.remove(&self.key);
        let before = state.open.len();
        state.open.retain(|open| open.key != self.key);
        let is_changed = state.open.len() != before;
        let driver = state.change(is_changed);
        drop(state);
        driver.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    fn keys(questions: &Questions) -> Vec<String> {
        match questions.poll_open(&Poller::from_waker(Waker::noop())) {
            Poll::Ready(asked) => asked.into_iter().map(|asked| asked.key).collect(),
            Poll::Pending => Vec::new(),
        }
    }

    #[tokio::test]
    async fn questions_that_wait_together_are_asked_together() {
        let questions = Arc::new(Questions::default());
        let ask = |key: &str| questions.ask(key.to_owned(), "roots/list", raw("{}"));
        let mut both = Box::pin(futures_util::future::join(ask("a"), ask("b")));
        let mut poller = Poller::from_waker(Waker::noop());
        assert!(both.as_mut().poll(&mut poller).is_pending());
        assert_eq!(keys(&questions), ["a", "b"]);
        questions.answer_open(HashMap::from([("a".to_owned(), raw("1"))]));
        assert!(both.as_mut().poll(&mut poller).is_pending());
        assert_eq!(keys(&questions), ["b"]);
        questions.answer_open(HashMap::from([("b".to_owned(), raw("2"))]));
        let (a, b) = both.await;
        assert_eq!((a.unwrap().get(), b.unwrap().get()), ("1", "2"));
    }

    #[test]
    fn a_dropped_question_is_not_asked() {
        let questions = Arc::new(Questions::default());
        let mut question = Box::pin(questions.ask("a".to_owned(), "roots/list", raw("{}")));
        let mut poller = Poller::from_waker(Waker::noop());
        assert!(question.as_mut().poll(&mut poller).is_pending());
        drop(question);
        assert!(keys(&questions).is_empty());
    }

    #[test]
    fn keys_are_the_same_in_each_round() {
        for _ in 0..2 {
            let questions = Questions::default();
            assert_eq!(questions.next_key("elicitation/create"), "elicitation-1");
            assert_eq!(questions.next_key("roots/list"), "roots-1");
            assert_eq!(questions.next_key("elicitation/create"), "elicitation-2");
        }
    }
}
