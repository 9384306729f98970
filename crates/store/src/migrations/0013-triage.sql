-- What people said of changes between versions. A change follows from the runs; only what is said of it is kept.
create table triage (
    id         integer primary key,
    change     text not null,
    state      text not null,
    text       text not null,
    at_unix_ms integer not null
) strict;

create trigger triage_no_update before update on triage begin
    select raise(abort, 'records are never changed');
end;
create trigger triage_no_delete before delete on triage begin
    select raise(abort, 'records are never deleted');
end;
