//! When a type asked for is the very type at hand.
//!
//! A handler may take its params, and give its result, as [`RawJson`](antiphon_core::RawJson). Then
//! the bytes should pass untouched, without a trip through serde.

use std::any::Any;

/// Gives the value back as a `T` if it is one.
pub(crate) fn same_type<A: 'static, T: 'static>(value: A) -> Result<T, A> {
    let mut value = Some(value);
    let cast = (&mut value as &mut dyn Any).downcast_mut::<Option<T>>().and_then(Option::take);
    match (cast, value) {
        (Some(same), _) => Ok(same),
        (None, Some(value)) => Err(value),
        (None, None) => unreachable!("the value is taken only by the cast"),
    }
}

#[cfg(test)]
mod tests {
    use super::same_type;

    #[test]
    fn gives_back_one_or_the_other() {
        assert_eq!(same_type::<u8, u8>(7), Ok(7));
        assert_eq!(same_type::<u8, u16>(7), Err(7));
    }
}
