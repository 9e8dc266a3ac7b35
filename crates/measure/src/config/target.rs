//! The one place where the text of TARGET becomes a scheme and a place.

#[cfg(test)]
mod tests;

use super::layer::{Given, Layer};
use super::nearest::nearest;
use super::settings::{Origin, Problem};

/// The place of native data where nobody says otherwise.
const DEFAULT: &str = "native:./assay-data";
/// The other spelling libpq and most DATABASE_URLs have.
const POSTGRESQL: &str = "postgresql";

/// A kind of target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheme<'a> {
    /// What its URL begins with.
    pub name: &'a str,
    /// How the URL is written.
    pub form: &'a str,
}

/// The target the layers name (TARGET, or ENGINE with its default place), as
/// (`scheme:rest`, where that was said). `schemes` are the known ones.
///
/// # Errors
/// A TARGET that does not say what kind of target it is, an ENGINE that contradicts it, or an unknown one.
/// No message repeats what may be a password.
pub fn target(layers: &[Layer], schemes: &[Scheme]) -> Result<(String, Origin), Problem> {
    let forms: Vec<&str> = schemes.iter().map(|scheme| scheme.form).collect();
    let forms = format!("give one of {}", forms.join(", "));
    let schemes: Vec<&str> = schemes.iter().map(|scheme| scheme.name).collect();
    let schemes = schemes.as_slice();
    let find =
        |name: &str| layers.iter().rev().find_map(|layer| layer.last(name).filter(|given| !given.text.is_empty()));
    let engine = find("ENGINE").map(|given| (given, given.text.to_lowercase()));
    let fail = |given: &Given, text: String| Problem { error: true, place: given.place.clone(), text };
    if let Some((given, engine)) = &engine
        && !schemes.contains(&engine.as_str())
    {
        return Err(fail(given, format!("ENGINE={engine} is unknown; give one of {}", schemes.join(", "))));
    }
    let Some(given) = find("TARGET") else {
        return Ok(match engine {
            None => (DEFAULT.to_owned(), Origin::Default),
            Some((given, engine)) if engine == "native" => (DEFAULT.to_owned(), given.origin.clone()),
            Some((given, engine)) => (format!("{engine}:"), given.origin.clone()),
        });
    };
    let (scheme, rest) = split(&given.text, schemes, &forms).map_err(|why| fail(given, why))?;
    match &engine {
        Some((engine_given, engine)) if engine != scheme => {
            Err(fail(engine_given, format!("ENGINE={engine} contradicts TARGET at {}; keep one of them", given.place)))
        }
        _ => Ok((format!("{scheme}:{rest}"), given.origin.clone())),
    }
}

/// The scheme and the place of a target's text.
///
/// # Errors
/// What is wrong and what may have been meant.
fn split<'a>(text: &'a str, schemes: &[&'a str], forms: &str) -> Result<(&'a str, &'a str), String> {
    if text.trim() != text {
        return Err("TARGET begins or ends with a space; remove it".to_owned());
    }
    let found = text.split_once(':').filter(|(scheme, _)| is_word(scheme));
    let Some((scheme, rest)) = found else {
        return Err(without_scheme(text, schemes, forms));
    };
    let scheme = if scheme == POSTGRESQL { "postgres" } else { scheme };
    if !schemes.contains(&scheme) {
        return Err(unknown(scheme, rest, schemes, forms));
    }
    if scheme == "postgres" && rest.starts_with('/') && !rest.starts_with("//") {
        return Err("TARGET: a PostgreSQL URL has two slashes; did you mean postgres://...?".to_owned());
    }
    let is_server = rest.starts_with("//") && rest.contains('@');
    if scheme == "native" && (is_server || super::mask_url_password(rest) != rest) {
        return Err("TARGET: native takes a directory, but this contains a user or a password; did you mean \
             postgres://USER@HOST/DB?"
            .to_owned());
    }
    Ok((scheme, rest))
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn unknown(scheme: &str, rest: &str, schemes: &[&str], forms: &str) -> String {
    let known = schemes.iter().copied().chain([POSTGRESQL]);
    // A scheme is shown only where it is near a known one: it may be anything, a password too.
    match nearest(scheme, known) {
        Some(near) => {
            let slashes = if rest.starts_with("//") { "//" } else { "" };
            let near = if near == POSTGRESQL { "postgres" } else { near };
            format!("TARGET: {scheme} is not a known kind of target; did you mean {near}:{slashes}...?")
        }
        None => format!("TARGET names no known kind of target; {forms}"),
    }
}

fn without_scheme(text: &str, schemes: &[&str], forms: &str) -> String {
    let is_path = text.starts_with(['/', '.', '~']);
    let meant = if text.contains('=') {
        "did you mean postgres:NAME=VALUE ...?".to_owned()
    } else if is_path && !text.contains(['@', ':']) {
        format!("did you mean native:{text}?")
    } else if text.contains(['@', ':']) {
        "did you mean postgres://USER@HOST/DB?".to_owned()
    } else if schemes.contains(&text) {
        format!("did you mean {text}:?")
    } else {
        format!("did you mean native:./{text}?")
    };
    format!("TARGET does not say what kind of target it is; {meant} {forms}")
}
