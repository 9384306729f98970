//! Lines on a terminal that are drawn over again, in place.

use std::io::Write;

/// A block of lines at the cursor; the cursor stands below it.
pub struct Screen<W: Write> {
    out: W,
    /// Characters of each line that is drawn.
    drawn: Vec<usize>,
    /// The same of lines that a window pushed above its top when it shrank, and gives back when it grows.
    hidden: Vec<usize>,
}

/// Columns and lines of a window.
pub type Size = (usize, usize);

impl<W: Write> Screen<W> {
    pub fn new(out: W) -> Self {
        Self {
            out,
            drawn: Vec::new(),
            hidden: Vec::new(),
        }
    }

    /// Draws lines over those drawn before, in one write, so that nothing flickers.
    ///
    /// Shape: lines are cut one short of the width: a full line would leave the cursor where terminals
    /// disagree.
    pub fn draw(&mut self, lines: &[String], (width, height): Size) {
        let mut text = self.back((width, height));
        for line in lines {
            let cut: String = line.chars().take(width.saturating_sub(1)).collect();
            self.drawn.push(cut.chars().count());
            text.push_str(&cut);
            text.push_str("\x1b[K\n");
        }
        text.push_str("\x1b[J");
        self.put(&text);
    }

    /// Takes the lines away; the cursor is where they began.
    pub fn clear(&mut self, size: Size) {
        if !self.drawn.is_empty() {
            let text = self.back(size) + "\x1b[J";
            self.hidden.clear();
            self.put(&text);
        }
    }

    /// Back to the first line. A terminal that became narrower has broken lines into several, and the cursor
    /// stops at the top of one that became lower: what is above it is remembered until the window grows.
    fn back(&mut self, (width, height): Size) -> String {
        let rows_of = |length: usize| length.div_ceil(width.max(1)).max(1);
        let lines: Vec<usize> = self.hidden.drain(..).chain(self.drawn.drain(..)).collect();
        let rows: usize = lines.iter().copied().map(rows_of).sum();
        let mut above = rows.saturating_sub(height.saturating_sub(1));
        let hidden = lines.into_iter().take_while(|length| {
            let is_above = above > 0;
            above = above.saturating_sub(rows_of(*length));
            is_above
        });
        self.hidden = hidden.collect();
        match rows {
            0 => "\r".to_owned(),
            rows => format!("\r\x1b[{rows}A"),
        }
    }

    /// What cannot be drawn is no reason to stop measuring.
    fn put(&mut self, text: &str) {
        let _ = self
            .out
            .write_all(text.as_bytes())
            .and_then(|()| self.out.flush());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As much of a terminal as a screen needs: lines, a cursor, up, erase line, erase below.
    #[derive(Default)]
    struct Terminal {
        lines: Vec<Vec<char>>,
        row: usize,
        column: usize,
    }

    impl Terminal {
        fn read(&mut self, bytes: &[u8]) {
            let text = String::from_utf8(bytes.to_vec()).unwrap();
            let mut rest = text.chars();
            while let Some(c) = rest.next() {
                self.lines
                    .resize(self.lines.len().max(self.row + 1), Vec::new());
                match c {
                    '\r' => self.column = 0,
                    '\n' => (self.row, self.column) = (self.row + 1, 0),
                    '\x1b' => {
                        assert_eq!(rest.next(), Some('['));
                        let mut number = String::new();
                        let end = loop {
                            match rest.next().unwrap() {
                                digit if digit.is_ascii_digit() => number.push(digit),
                                end => break end,
                            }
                        };
                        match end {
                            'A' => self.row -= number.parse::<usize>().unwrap(),
                            'K' => self.lines[self.row].truncate(self.column),
                            'J' => {
                                self.lines[self.row].truncate(self.column);
                                self.lines.truncate(self.row + 1);
                            }
                            other => panic!("{other}"),
                        }
                    }
                    c => {
                        let line = &mut self.lines[self.row];
                        line.resize(line.len().max(self.column + 1), ' ');
                        line[self.column] = c;
                        self.column += 1;
                    }
                }
            }
        }

        fn shown(&self) -> Vec<String> {
            let lines = self.lines.iter().map(|line| line.iter().collect());
            lines.filter(|line: &String| !line.is_empty()).collect()
        }
    }

    fn lines(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    fn after(steps: impl FnOnce(&mut Screen<Vec<u8>>)) -> Terminal {
        let mut screen = Screen::new(b"before\n".to_vec());
        steps(&mut screen);
        let mut terminal = Terminal::default();
        terminal.read(&screen.out);
        terminal
    }

    #[test]
    fn only_the_last_drawing_is_seen() {
        let terminal = after(|screen| {
            screen.draw(&lines(&["one", "two", "a longer third"]), (80, 24));
            screen.draw(&lines(&["1", "2", "3", "4"]), (80, 24));
            screen.draw(&lines(&["x", "y"]), (80, 24));
        });
        assert_eq!(terminal.shown(), ["before", "x", "y"]);
    }

    #[test]
    fn what_is_cleared_is_gone_and_the_next_line_takes_its_place() {
        let terminal = after(|screen| {
            screen.draw(&lines(&["one", "two"]), (80, 24));
            screen.clear((80, 24));
            screen.clear((80, 24));
            screen.put("a note\n");
            screen.draw(&lines(&["three"]), (80, 24));
        });
        assert_eq!(terminal.shown(), ["before", "a note", "three"]);
        let gone = after(|screen| {
            screen.draw(&lines(&["one", "two"]), (80, 24));
            screen.clear((80, 24));
        });
        assert_eq!(gone.shown(), ["before"]);
        assert_eq!((gone.row, gone.column), (1, 0));
    }

    #[test]
    fn no_line_reaches_the_last_column() {
        let terminal = after(|screen| screen.draw(&lines(&[&"ä".repeat(100)]), (20, 24)));
        assert_eq!(terminal.shown()[1].chars().count(), 19);
    }

    #[test]
    fn one_drawing_is_one_write() {
        struct Counting(usize);
        impl Write for Counting {
            fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
                self.0 += 1;
                Ok(bytes.len())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let mut screen = Screen::new(Counting(0));
        screen.draw(&lines(&["one", "two"]), (80, 24));
        screen.draw(&lines(&["three"]), (80, 24));
        assert_eq!(screen.out.0, 2);
    }

    #[test]
    fn lines_that_a_narrower_terminal_broke_are_taken_away_too() {
        let mut screen = Screen::new(Vec::new());
        screen.draw(&lines(&[&"x".repeat(70), "short"]), (80, 24));
        screen.out.clear();
        screen.clear((40, 24));
        assert_eq!(String::from_utf8(screen.out).unwrap(), "\r\x1b[3A\x1b[J");
    }

    #[test]
    fn lines_that_a_lower_window_pushed_out_are_taken_away_when_it_grows() {
        let mut screen = Screen::new(Vec::new());
        let ten = lines(&["x"; 10]);
        let written = |screen: &mut Screen<Vec<u8>>| {
            let text = String::from_utf8(std::mem::take(&mut screen.out)).unwrap();
            text.split_once('x')
                .map_or(text.clone(), |(start, _)| start.to_owned())
        };
        screen.draw(&ten, (80, 24));
        assert_eq!(written(&mut screen), "\r");
        // Four of the ten fit, so six are above the top.
        screen.draw(&ten[..4], (80, 5));
        assert_eq!(written(&mut screen), "\r\x1b[10A");
        screen.draw(&ten, (80, 24));
        assert_eq!(written(&mut screen), "\r\x1b[10A");
        screen.draw(&ten, (80, 24));
        assert_eq!(written(&mut screen), "\r\x1b[10A");
        // A line that stays comes between: what is above it is no longer the board's.
        screen.draw(&ten[..4], (80, 5));
        screen.clear((80, 5));
        screen.out.clear();
        screen.draw(&ten, (80, 24));
        assert_eq!(written(&mut screen), "\r");
    }
}
