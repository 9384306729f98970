//! A client that sends statements in the simple and in the extended protocol, and waits for each answer.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

pub struct Client {
    stream: UnixStream,
}

/// A value of a parameter as text.
pub type Value<'a> = Option<&'a [u8]>;

impl Client {
    pub fn connect(directory: &Path, database: &str, options: &[(&str, &str)]) -> Self {
        let mut stream = UnixStream::connect(directory.join(".s.PGSQL.5432")).unwrap();
        let mut body = 196_608_i32.to_be_bytes().to_vec();
        let fixed = [("user", "postgres"), ("database", database)];
        for (name, value) in fixed.iter().chain(options) {
            body.extend([name.as_bytes(), b"\0", value.as_bytes(), b"\0"].concat());
        }
        body.push(0);
        stream.write_all(&length(&body)).unwrap();
        stream.write_all(&body).unwrap();
        let mut client = Self { stream };
        client.answer();
        client
    }

    /// Sends one text; returns what `COPY` sent back.
    pub fn simple(&mut self, text: &[u8]) -> Vec<u8> {
        self.send(b'Q', &[text, b"\0"].concat());
        self.answer()
    }

    /// Parse under a name.
    pub fn prepare(&mut self, name: &str, text: &str) {
        self.parse(name, text);
        self.send(b'S', b"");
        self.answer();
    }

    /// Bind and Execute of a name; of the unnamed statement with Parse before.
    pub fn execute(&mut self, name: &str, text: &str, values: &[Value<'_>]) {
        if name.is_empty() {
            self.parse(name, text);
        }
        let mut body = [b"\0", name.as_bytes(), b"\0\0\0"].concat();
        body.extend(u16::try_from(values.len()).unwrap().to_be_bytes());
        for value in values {
            match value {
                None => body.extend((-1_i32).to_be_bytes()),
                Some(bytes) => {
                    body.extend(i32::try_from(bytes.len()).unwrap().to_be_bytes());
                    body.extend(*bytes);
                }
            }
        }
        body.extend(0_u16.to_be_bytes());
        self.send(b'B', &body);
        self.send(b'E', b"\0\0\0\0\0");
        self.send(b'S', b"");
        self.answer();
    }

    fn parse(&mut self, name: &str, text: &str) {
        self.send(
            b'P',
            &[name.as_bytes(), b"\0", text.as_bytes(), b"\0\0\0"].concat(),
        );
    }

    fn send(&mut self, tag: u8, body: &[u8]) {
        self.stream
            .write_all(&[&[tag][..], &length(body), body].concat())
            .unwrap();
    }

    /// Reads to the next ReadyForQuery; returns the data of a copy. Errors are answers, too.
    fn answer(&mut self) -> Vec<u8> {
        let mut data = Vec::new();
        loop {
            let mut head = [0; 5];
            self.stream.read_exact(&mut head).unwrap();
            let length = u32::from_be_bytes(head[1..].try_into().unwrap());
            let mut body = vec![0; usize::try_from(length).unwrap() - 4];
            self.stream.read_exact(&mut body).unwrap();
            match head[0] {
                b'd' => data.extend(body),
                b'Z' => return data,
                _ => {}
            }
        }
    }
}

fn length(body: &[u8]) -> [u8; 4] {
    u32::try_from(body.len() + 4).unwrap().to_be_bytes()
}
