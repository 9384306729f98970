-- What people know that runs do not say, and which anchor follows which. Levels and their shifts follow from the runs.
create table annotation (
    id            integer primary key,
    kind          text not null,
    text          text not null,
    version       text,
    at_unix_ms    integer,
    host          text,
    cell          text,
    takes_back    integer references annotation (id),
    said_unix_ms  integer not null
) strict;

create trigger annotation_no_update before update on annotation begin
    select raise(abort, 'records are never changed');
end;
create trigger annotation_no_delete before delete on annotation begin
    select raise(abort, 'records are never deleted');
end;

create table anchor (
    id          integer primary key,
    host        text not null,
    before      text not null,
    after       text not null,
    at_unix_ms  integer not null
) strict;

create trigger anchor_no_update before update on anchor begin
    select raise(abort, 'records are never changed');
end;
create trigger anchor_no_delete before delete on anchor begin
    select raise(abort, 'records are never deleted');
end;
