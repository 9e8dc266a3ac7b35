//! `#[figures]`: a struct of a record is the one definition of its figures.
//!
//! It gives the struct what every part of a record has (serde with defaults, clones, equality), and makes from the
//! attributes of its fields the trait `assay_measure::figures::Figures`: the columns and cells of its table, and its
//! metrics.
//!
//! | at a field | meaning |
//! |---|---|
//! | `#[column("p50 us", 1)]` | a column of the table, here with one decimal |
//! | `#[column("size", with = sized)]` | a column whose cell `sized(&field)` makes |
//! | `#[columns]` | the columns of a field that has figures itself |
//! | `#[metric("commits of one stream")]` | a metric under the name of the field, which gives its unit |
//! | `#[metric("triad", Primary, half_width = field)]` | one of this group, whose 95 % interval is this wide on each side |
//! | `#[metric("wrong words", Lower)]` | one of which less is better, where the name of the field does not show it |
//! | `#[metrics]` | the metrics of a field that has figures itself, of each of its rows |
//! | `#[metrics(is_known)]` | of the rows for which `is_known(&row)` |
//!
//! At the struct: `group = Storage` for its metrics, and `scope = "{level} {pages}"`, which distinguishes its rows.
#![forbid(unsafe_code)]

use proc_macro::TokenStream;
use proc_macro2::{Ident, Span, TokenStream as Code};
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::{Attribute, Data, DeriveInput, Error, Field, LitInt, LitStr, Meta, Path, Token, parse_macro_input};

/// See the crate.
#[proc_macro_attribute]
pub fn figures(args: TokenStream, item: TokenStream) -> TokenStream {
    let args = parse_macro_input!(args as Args);
    let item = parse_macro_input!(item as DeriveInput);
    expand(&args, item).unwrap_or_else(Error::into_compile_error).into()
}

/// Of the struct.
#[derive(Default)]
struct Args {
    scope: Option<LitStr>,
    group: Option<Ident>,
}

impl Parse for Args {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut args = Self::default();
        while !input.is_empty() {
            match word(input)? {
                Some(name) if name == "scope" => args.scope = Some(input.parse()?),
                Some(name) if name == "group" => args.group = Some(input.parse()?),
                _ => return Err(input.error("`scope` or `group`")),
            }
            comma(input)?;
        }
        Ok(args)
    }
}

/// `name =`, if that is what comes.
fn word(input: ParseStream<'_>) -> syn::Result<Option<Ident>> {
    if !input.peek2(Token![=]) {
        return Ok(None);
    }
    let name = input.parse()?;
    input.parse::<Token![=]>()?;
    Ok(Some(name))
}

fn comma(input: ParseStream<'_>) -> syn::Result<()> {
    input.parse::<Option<Token![,]>>().map(drop)
}

struct Column {
    title: LitStr,
    decimals: LitInt,
    with: Option<Path>,
}

impl Parse for Column {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let title = input.parse()?;
        let mut column = Self { title, decimals: LitInt::new("0", Span::call_site()), with: None };
        while comma(input).is_ok() && !input.is_empty() {
            match word(input)? {
                Some(name) if name == "with" => column.with = Some(input.parse()?),
                Some(name) => return Err(Error::new_spanned(name, "a column knows `with`")),
                None => column.decimals = input.parse()?,
            }
        }
        Ok(column)
    }
}

struct Metric {
    name: LitStr,
    group: Option<Ident>,
    better: Option<Ident>,
    half_width: Option<Ident>,
}

impl Parse for Metric {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut metric = Self { name: input.parse()?, group: None, better: None, half_width: None };
        while comma(input).is_ok() && !input.is_empty() {
            match word(input)? {
                Some(name) if name == "half_width" => metric.half_width = Some(input.parse()?),
                Some(name) => return Err(Error::new_spanned(name, "a metric knows `half_width`")),
                None => {
                    let word: Ident = input.parse()?;
                    let is_way = ["Higher", "Lower", "Neither"].iter().any(|way| word == way);
                    *(if is_way { &mut metric.better } else { &mut metric.group }) = Some(word);
                }
            }
        }
        Ok(metric)
    }
}

/// What the fields say, as code.
#[derive(Default)]
struct Said {
    columns: Code,
    cells: Code,
    metrics: Code,
}

impl Said {
    /// Takes what is ours; whether it was.
    fn take(&mut self, attribute: &Attribute, field: &Field, args: &Args) -> syn::Result<bool> {
        let (name, of) = (&field.ident, &field.ty);
        let key = name.as_ref().map(ToString::to_string);
        let path = attribute.path();
        if path.is_ident("column") {
            let Column { title, decimals, with } = attribute.parse_args()?;
            self.columns.extend(quote!(all.push((#title, <#of as Shown>::ALIGN));));
            self.cells.extend(match with {
                Some(with) => quote!(all.push(#with(&self.#name).into());),
                None => quote!(all.push(self.#name.cell(#decimals));),
            });
        } else if path.is_ident("columns") {
            self.columns.extend(quote!(all.extend(<#of as Figures>::columns());));
            self.cells.extend(quote!(all.extend(self.#name.cells());));
        } else if path.is_ident("metric") {
            let Metric { name: title, group, better, half_width } = attribute.parse_args()?;
            let group = group.as_ref().or(args.group.as_ref());
            let group = group.ok_or_else(|| Error::new_spanned(attribute, "a metric has a group"))?;
            let mut made = quote!(metric(Group::#group, #key, #title, &scope, self.#name.clone().into()));
            if let Some(better) = better {
                made = quote!(Metric { better: Better::#better, ..#made });
            }
            if let Some(half_width) = half_width {
                made = quote!(between(#made, &self.#half_width));
            }
            self.metrics.extend(quote!(all.push(#made);));
        } else if path.is_ident("metrics") {
            self.metrics.extend(match &attribute.meta {
                Meta::Path(_) => quote!(all.extend(self.#name.metrics());),
                _ => {
                    let wanted: Path = attribute.parse_args()?;
                    quote!(all.extend(self.#name.iter().filter(|row| #wanted(row)).flat_map(Figures::metrics));)
                }
            });
        } else {
            return Ok(false);
        }
        Ok(true)
    }
}

fn expand(args: &Args, mut item: DeriveInput) -> syn::Result<Code> {
    let mut said = Said::default();
    let Data::Struct(of) = &mut item.data else {
        return Err(Error::new_spanned(item, "figures are the fields of a struct"));
    };
    for field in &mut of.fields {
        let mut others = Vec::new();
        for attribute in std::mem::take(&mut field.attrs) {
            if !said.take(&attribute, field, args)? {
                others.push(attribute);
            }
        }
        field.attrs = others;
    }
    let Said { columns, cells, metrics } = said;
    let bound = args.scope.iter().flat_map(|scope| names(&scope.value()));
    let bound: Vec<Ident> = bound.map(|name| Ident::new(&name, Span::call_site())).collect();
    let scope = args.scope.as_ref().map_or_else(|| quote!(""), |scope| quote!(words(&format!(#scope))));
    let name = &item.ident;
    let shown = (!columns.is_empty() || !metrics.is_empty()).then(|| {
        quote! {
            const _: () = {
                use ::assay_measure::figures::*;
                impl Figures for #name {
                    fn columns() -> Vec<(&'static str, Align)> {
                        let mut all = Vec::new();
                        #columns
                        all
                    }
                    fn cells(&self) -> Vec<Cell> {
                        let mut all = Vec::new();
                        #cells
                        all
                    }
                    fn metrics(&self) -> Vec<Metric> {
                        let Self { #(#bound,)* .. } = self;
                        let scope = #scope;
                        let mut all = Vec::new();
                        #metrics
                        all
                    }
                }
            };
        }
    });
    Ok(quote! {
        #[derive(Clone, Debug, Default, PartialEq, ::serde::Serialize, ::serde::Deserialize)]
        #[serde(default)]
        #item
        #shown
    })
}

/// The names in the braces of a format.
fn names(format: &str) -> Vec<String> {
    let parts = format.split('{').skip(1);
    let names = parts.filter_map(|part| part.split(['}', ':']).next());
    names.map(str::to_owned).collect()
}
