//! A macro for the setters of optional members.

/// Writes a setter `with_*` for each optional field. Each takes anything that converts into the type of the field.
macro_rules! setters {
    ($type:ident { $($setter:ident => $field:ident: $value:ty),* $(,)? }) => {
        impl $type {
            $(
                #[doc = concat!("Sets `", stringify!($field), "`.")]
                #[must_use]
                pub fn $setter(mut self, value: impl Into<$value>) -> Self {
                    self.$field = Some(value.into());
                    self
                }
            )*
        }
    };
}

/// Writes `with_meta` for each type.
macro_rules! meta_setters {
    ($($type:ident),* $(,)?) => {
        $(
            impl $type {
                /// Sets `_meta`.
                #[must_use]
                pub fn with_meta(mut self, meta: impl Into<crate::types::Meta>) -> Self {
                    self.meta = meta.into();
                    self
                }
            }
        )*
    };
}
