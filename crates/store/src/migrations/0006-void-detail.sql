-- The facts behind a slice that does not count: what the server or the connection said.
alter table slice add column void_detail text;
