-- Bisections: what is searched, and what happened since, in order of time.
create table bisection (
    id              integer primary key,
    name            text not null unique,
    question        text not null,
    started_unix_ms integer not null,
    written_by      text not null
) strict;

create table bisection_event (
    id         integer primary key,
    bisection  integer not null references bisection (id),
    event      text not null,
    at_unix_ms integer not null
) strict;
create index bisection_event_bisection on bisection_event (bisection);

create trigger bisection_no_update before update on bisection begin
    select raise(abort, 'bisections are never changed');
end;
create trigger bisection_no_delete before delete on bisection begin
    select raise(abort, 'bisections are never deleted');
end;
create trigger bisection_event_no_update before update on bisection_event begin
    select raise(abort, 'events of bisections are never changed');
end;
create trigger bisection_event_no_delete before delete on bisection_event begin
    select raise(abort, 'events of bisections are never deleted');
end;
