//! Arithmetic in parentheses: `(4*1024)`, `(2^20 - 512)`.

use super::number::{Read, with_unit};

/// Evaluates the text between the outermost parentheses.
///
/// # Errors
/// A description of what is wrong.
pub(super) fn evaluate(text: &str, decimal: bool) -> Read<u64> {
    let mut parser = Parser { rest: text, decimal, depth: 0 };
    let result = parser.sum()?;
    parser.skip();
    if !parser.rest.is_empty() {
        return Err(format!("cannot read {:?} in the expression", parser.rest));
    }
    u64::try_from(result).map_err(|_| "is negative, or too large".into())
}

/// Maximum nesting, so that no text exhausts the stack.
const DEEPEST: u32 = 64;

struct Parser<'a> {
    rest: &'a str,
    decimal: bool,
    depth: u32,
}

impl Parser<'_> {
    fn skip(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn take(&mut self, operator: char) -> bool {
        self.skip();
        match self.rest.strip_prefix(operator) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn sum(&mut self) -> Read<i128> {
        let mut total = self.product()?;
        loop {
            total = if self.take('+') {
                total.checked_add(self.product()?)
            } else if self.take('-') {
                total.checked_sub(self.product()?)
            } else {
                return Ok(total);
            }
            .ok_or("is too large")?;
        }
    }

    fn product(&mut self) -> Read<i128> {
        let mut total = self.power()?;
        loop {
            total = if self.take('*') {
                total.checked_mul(self.power()?).ok_or("is too large")?
            } else if self.take('/') {
                let by = self.power()?;
                total.checked_div(by).ok_or("divides by zero")?
            } else if self.take('%') {
                let by = self.power()?;
                total.checked_rem(by).ok_or("divides by zero")?
            } else {
                return Ok(total);
            };
        }
    }

    fn power(&mut self) -> Read<i128> {
        let base = self.atom()?;
        if !self.take('^') {
            return Ok(base);
        }
        self.deeper()?;
        let exponent = self.power()?;
        self.depth -= 1;
        let exponent = u32::try_from(exponent).map_err(|_| "has a bad exponent")?;
        base.checked_pow(exponent).ok_or_else(|| "is too large".into())
    }

    fn atom(&mut self) -> Read<i128> {
        if self.take('-') {
            self.deeper()?;
            let value = self.atom()?;
            self.depth -= 1;
            return value.checked_neg().ok_or_else(|| "is too large".into());
        }
        if self.take('(') {
            self.deeper()?;
            let value = self.sum()?;
            self.depth -= 1;
            return if self.take(')') { Ok(value) } else { Err("has an open parenthesis".into()) };
        }
        self.skip();
        let end = self.rest.find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap_or(self.rest.len());
        if end == 0 {
            return Err("has an incomplete expression".into());
        }
        let number = with_unit(&self.rest[..end], self.decimal)?;
        self.rest = &self.rest[end..];
        Ok(i128::from(number))
    }

    fn deeper(&mut self) -> Read<()> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err("is nested too deeply".into());
        }
        Ok(())
    }
}
