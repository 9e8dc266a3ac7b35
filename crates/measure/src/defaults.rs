//! Structs of options with the default beside each field.

/// Structs as usual, each with a `Default`: a field is what stands behind its `=`, or its type's own default where
/// nothing does.
#[macro_export]
macro_rules! with_defaults {
    (@) => { Default::default() };
    (@ $default:expr) => { $default };
    ($(
        $(#[$about:meta])*
        $vis:vis struct $name:ident {
            $($(#[$doc:meta])* $field_vis:vis $field:ident: $type:ty $(= $default:expr)?,)*
        }
    )+) => {$(
        $(#[$about])*
        $vis struct $name {
            $($(#[$doc])* $field_vis $field: $type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $crate::with_defaults!(@ $($default)?),)* }
            }
        }
    )+};
}
