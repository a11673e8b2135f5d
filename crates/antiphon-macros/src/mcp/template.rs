//! URI templates: their variables, as the library reads them.
//!
//! This module does not compare URIs. It refuses what the library refuses, at the place of the template.

use syn::{Error, LitStr, Result};

/// A template that the library accepts.
pub(crate) struct UriTemplate {
    pub(crate) variables: Vec<String>,
}

impl UriTemplate {
    pub(super) fn parse(literal: &LitStr) -> Result<Self> {
        let text = literal.value();
        let variables = variables(&text).map_err(|reason| Error::new(literal.span(), reason))?;
        if variables.is_empty() {
            let text =
                "the template has no variable: write `uri = \"..\"`, or a variable such as `{id}`";
            return Err(Error::new(literal.span(), text));
        }
        Ok(Self { variables })
    }
}

fn variables(template: &str) -> std::result::Result<Vec<String>, String> {
    let mut variables: Vec<String> = Vec::new();
    let mut rest = template;
    while let Some((text, after)) = rest.split_once('{') {
        if text.is_empty() && !variables.is_empty() {
            let text = "two variables need a text between them, such as `/`";
            return Err(text.to_owned());
        }
        let Some((variable, after)) = after.split_once('}') else {
            return Err("a brace is not closed: add `}`".to_owned());
        };
        let name = variable_name(variable)?;
        if variables.contains(&name) {
            return Err(format!("the variable `{name}` occurs twice: rename one"));
        }
        variables.push(name);
        rest = after;
    }
    Ok(variables)
}

fn variable_name(text: &str) -> std::result::Result<String, String> {
    let name = text.strip_prefix('+').unwrap_or(text);
    let name = name.strip_suffix('*').unwrap_or(name);
    let is_valid = !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.".contains(&byte));
    match is_valid {
        true => Ok(name.to_owned()),
        false => Err(format!(
            "`{{{text}}}` is not supported: write `{{name}}` for one part of a path, or `{{+name}}` for several"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::variables;

    #[test]
    fn variables_are_found() {
        assert_eq!(variables("a://{x}/{+y}/{z*}").unwrap(), ["x", "y", "z"]);
        assert_eq!(variables("a://{x.y_1}").unwrap(), ["x.y_1"]);
        assert!(variables("a://b").unwrap().is_empty());
    }

    #[test]
    fn unclear_templates_are_refused() {
        for template in ["t://{", "t://{}", "t://{a}{b}", "t://{?q}", "t://{a,b}", "{a}/{a}"] {
            assert!(variables(template).is_err(), "{template}");
        }
    }
}
