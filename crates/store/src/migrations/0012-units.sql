-- An experiment on several hosts: where its spool is, its units, what became of them, and the files merged.
create table execution (
    id              integer primary key,
    name            text not null unique,
    spool           text not null,
    binary_sha256   text not null,
    started_unix_ms integer not null
) strict;

create table unit (
    id        integer primary key,
    execution integer not null references execution (id),
    unit      integer not null,
    lane      integer not null,
    name      text not null,
    unique (execution, unit)
) strict;

create table unit_event (
    id         integer primary key,
    unit       integer not null references unit (id),
    attempt    integer not null,
    state      text not null,
    host       text not null,
    at_unix_ms integer not null,
    text       text not null,
    unique (unit, attempt, state, at_unix_ms)
) strict;

create table archive (
    sha256     text primary key,
    unit       integer not null references unit (id),
    attempt    integer not null,
    name       text not null,
    bytes      integer not null,
    at_unix_ms integer not null
) strict, without rowid;

create trigger execution_no_update before update on execution begin
    select raise(abort, 'records are never changed');
end;
create trigger execution_no_delete before delete on execution begin
    select raise(abort, 'records are never deleted');
end;
create trigger unit_no_update before update on unit begin
    select raise(abort, 'records are never changed');
end;
create trigger unit_no_delete before delete on unit begin
    select raise(abort, 'records are never deleted');
end;
create trigger unit_event_no_update before update on unit_event begin
    select raise(abort, 'records are never changed');
end;
create trigger unit_event_no_delete before delete on unit_event begin
    select raise(abort, 'records are never deleted');
end;
create trigger archive_no_update before update on archive begin
    select raise(abort, 'records are never changed');
end;
create trigger archive_no_delete before delete on archive begin
    select raise(abort, 'records are never deleted');
end;
