//! Just enough of the protocol to ask a server something, because CI machines have no psql.

use deltabench_model::endpoint::Endpoint;
use deltabench_model::installation::Setting;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

/// A connection.
pub struct Session(UnixStream);

impl Session {
    pub fn open(endpoint: &Endpoint) -> Self {
        let mut stream = UnixStream::connect(endpoint.to_string()).unwrap();
        let start = b"user\0deltabench\0database\0postgres\0\0";
        stream
            .write_all(&u32::try_from(start.len() + 8).unwrap().to_be_bytes())
            .unwrap();
        stream.write_all(&196_608_u32.to_be_bytes()).unwrap();
        stream.write_all(start).unwrap();
        read_until_ready(&mut stream);
        Self(stream)
    }

    /// Sends a statement in one packet; its rows as text, SQL null is `None`.
    pub fn query(&mut self, sql: &str) -> Vec<Vec<Option<String>>> {
        let mut message = vec![b'Q'];
        message.extend(u32::try_from(sql.len() + 5).unwrap().to_be_bytes());
        message.extend(sql.as_bytes());
        message.push(0);
        self.0.write_all(&message).unwrap();
        read_until_ready(&mut self.0)
    }
}

/// Rows of a statement as text, over a connection of its own; SQL null is `None`.
pub fn query(endpoint: &Endpoint, sql: &str) -> Vec<Vec<Option<String>>> {
    let mut session = Session::open(endpoint);
    let rows = session.query(sql);
    session.0.write_all(&[b'X', 0, 0, 0, 4]).unwrap();
    rows
}

fn read_until_ready(stream: &mut UnixStream) -> Vec<Vec<Option<String>>> {
    let mut rows = Vec::new();
    loop {
        let mut head = [0_u8; 5];
        stream.read_exact(&mut head).unwrap();
        let length = u32::from_be_bytes(head[1..].try_into().unwrap());
        let mut body = vec![0_u8; usize::try_from(length - 4).unwrap()];
        stream.read_exact(&mut body).unwrap();
        match head[0] {
            b'Z' => return rows,
            b'D' => rows.push(row(&body)),
            b'E' => panic!("{}", String::from_utf8_lossy(&body)),
            _ => {}
        }
    }
}

fn row(body: &[u8]) -> Vec<Option<String>> {
    let (columns, mut rest) = body.split_at(2);
    let columns = u16::from_be_bytes(columns.try_into().unwrap());
    let mut values = Vec::new();
    for _ in 0..columns {
        let (length, tail) = rest.split_at(4);
        let length = usize::try_from(i32::from_be_bytes(length.try_into().unwrap())).ok();
        let (value, tail) = tail.split_at(length.unwrap_or(0));
        values.push(length.map(|_| String::from_utf8(value.to_vec()).unwrap()));
        rest = tail;
    }
    values
}

/// The one value of the one row.
pub fn value(endpoint: &Endpoint, sql: &str) -> String {
    query(endpoint, sql)[0][0].clone().unwrap()
}

/// All of `pg_settings`.
pub fn settings(endpoint: &Endpoint) -> Vec<Setting> {
    query(
        endpoint,
        "select name, setting, unit, boot_val, source from pg_settings",
    )
    .into_iter()
    .map(|row| Setting {
        name: row[0].clone().unwrap(),
        value: row[1].clone().unwrap_or_default(),
        unit: row[2].clone(),
        boot_value: row[3].clone(),
        source: row[4].clone().unwrap(),
    })
    .collect()
}
