//! Boxes in boxes as a drawing that needs no script.

use assay_measure::section::Tile;
use std::fmt::Write as _;

/// Units of the drawing are pixels of a page at its usual size.
const WIDTH: f64 = 1040.0;
const GAP: f64 = 8.0;
const LINE: f64 = 16.0;
/// Of a letter, on average; a title that is longer makes its box wider.
const LETTER: f64 = 6.6;
const LEAST: f64 = 54.0;

/// A box with its place in the one around it.
struct Laid<'a> {
    tile: &'a Tile,
    width: f64,
    height: f64,
    inside: Vec<(f64, f64, Laid<'a>)>,
}

/// The boxes side by side, in rows where they do not fit; what each says is told to who does not see it, too.
pub(super) fn svg(tiles: &[Tile]) -> String {
    let all: Vec<Laid<'_>> = tiles.iter().map(|tile| lay(tile, WIDTH - 2.0 * GAP)).collect();
    let (placed, width, height) = rows(all, WIDTH, 0.0);
    let mut out = String::new();
    let titles: Vec<&str> = tiles.iter().map(|tile| tile.title.as_str()).collect();
    write!(
        out,
        "<svg role=\"img\" aria-label=\"{}\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} \
         {height:.0}\">",
        escaped(&titles.join(", "))
    )
    .expect("a string");
    for (x, y, laid) in &placed {
        draw(&mut out, laid, *x, *y);
    }
    out + "</svg>"
}

/// Boxes in rows no wider than `width`, the first of them below `top`: each with its place, and how wide and high it all is.
fn rows(all: Vec<Laid<'_>>, width: f64, top: f64) -> (Vec<(f64, f64, Laid<'_>)>, f64, f64) {
    let (mut x, mut y, mut high, mut widest) = (0.0, top, 0.0_f64, 0.0_f64);
    let mut placed = Vec::with_capacity(all.len());
    for laid in all {
        if x > 0.0 && x + laid.width > width {
            (x, y, high) = (0.0, y + high + GAP, 0.0);
        }
        let at = (x, y);
        x += laid.width + GAP;
        widest = widest.max(x - GAP);
        high = high.max(laid.height);
        placed.push((at.0, at.1, laid));
    }
    (placed, widest, y + high)
}

fn lay(tile: &Tile, most: f64) -> Laid<'_> {
    let said = std::iter::once(&tile.title).chain(&tile.lines);
    let longest = said.map(|line| line.chars().count()).max().unwrap_or(0);
    let own = longest as f64 * LETTER;
    let head = LINE * (1 + tile.lines.len()) as f64;
    let inside: Vec<Laid<'_>> = tile.inside.iter().map(|tile| lay(tile, most - 2.0 * GAP)).collect();
    let is_empty = inside.is_empty();
    let (placed, width, bottom) = rows(inside, most - 2.0 * GAP, head + GAP);
    Laid {
        tile,
        width: own.max(width).max(LEAST) + 2.0 * GAP,
        height: if is_empty { head } else { bottom } + GAP,
        inside: placed.into_iter().map(|(x, y, laid)| (x + GAP, y, laid)).collect(),
    }
}

fn draw(out: &mut String, laid: &Laid<'_>, x: f64, y: f64) {
    let class = if laid.tile.is_leaf { " class=\"leaf\"" } else { "" };
    write!(
        out,
        "<rect{class} x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"4\"/>",
        laid.width, laid.height
    )
    .expect("a string");
    let said = std::iter::once(&laid.tile.title).chain(&laid.tile.lines);
    for (nth, line) in said.enumerate() {
        let class = if nth > 0 { " class=\"more\"" } else { "" };
        write!(
            out,
            "<text{class} x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            x + GAP,
            y + LINE * (nth + 1) as f64 - 2.0,
            escaped(line)
        )
        .expect("a string");
    }
    for (inner_x, inner_y, inner) in &laid.inside {
        draw(out, inner, x + inner_x, y + inner_y);
    }
}

fn escaped(text: &str) -> String {
    let plain = assay_measure::plain::plain(text);
    let mut out = String::with_capacity(plain.len());
    for letter in plain.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tile(title: &str, inside: Vec<Tile>) -> Tile {
        Tile { title: title.to_owned(), is_leaf: inside.is_empty(), inside, ..Tile::default() }
    }

    fn holds(laid: &Laid<'_>) -> bool {
        laid.inside.iter().all(|(x, y, inner)| {
            let fits = x + inner.width <= laid.width + 0.01 && y + inner.height <= laid.height + 0.01;
            fits && *x >= 0.0 && *y > 0.0 && holds(inner)
        })
    }

    #[test]
    fn every_box_lies_within_the_one_around_it_and_rows_break_before_the_edge() {
        let cores: Vec<Tile> =
            (0..100).map(|n| tile(&format!("Core {n}"), vec![tile(&format!("CPU {n}"), Vec::new())])).collect();
        let socket = tile("Socket 0", cores);
        let laid = lay(&socket, WIDTH);
        assert!(holds(&laid));
        assert!(laid.width <= WIDTH, "{}", laid.width);
        assert_eq!(svg(&[socket]).matches("<rect").count(), 201);
    }

    #[test]
    fn what_a_captured_file_says_is_text_and_never_markup() {
        let drawn = svg(&[tile("<script>\"&", Vec::new())]);
        assert!(drawn.contains("&lt;script&gt;&quot;&amp;"), "{drawn}");
        assert!(!drawn.contains("<script"), "{drawn}");
    }
}
