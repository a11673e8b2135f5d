//! A free conversion between two generic types that are the same concrete type.
//!
//! A handler may take its params and return its result as [`RawJson`](antiphon_core::RawJson). Then the
//! bytes are passed on unchanged, without serde.

use std::any::Any;

/// Returns the value as a `T` if it has that type, or else unchanged.
pub(crate) fn same_type<A: 'static, T: 'static>(value: A) -> Result<T, A> {
    let mut value = Some(value);
    let cast = (&mut value as &mut dyn Any).downcast_mut::<Option<T>>().and_then(Option::take);
    match (cast, value) {
        (Some(same), _) => Ok(same),
        (None, Some(value)) => Err(value),
        (None, None) => unreachable!("only the cast takes the value"),
    }
}

/// Whether the type is a `Result`. The check is made by the name of the type, because a bound cannot
/// exclude a type.
pub(crate) fn is_result<T>() -> bool {
    std::any::type_name::<T>().starts_with("core::result::Result<")
}

#[cfg(test)]
mod tests {
    use super::{is_result, same_type};

    #[test]
    fn returns_a_value_of_the_same_type() {
        assert_eq!(same_type::<u8, u8>(7), Ok(7));
        assert_eq!(same_type::<u8, u16>(7), Err(7));
    }

    #[test]
    fn recognises_a_result() {
        type Alias = Result<(), std::fmt::Error>;
        struct Newtype(#[expect(dead_code)] Alias);
        assert!(is_result::<Alias>() && is_result::<Result<Vec<u8>, String>>());
        assert!(!is_result::<Newtype>() && !is_result::<Option<Alias>>() && !is_result::<u8>());
    }
}
