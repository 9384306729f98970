//! A user's data directory: copied, prepared without network, upgraded by the real `pg_upgrade`.

use crate::lab::Lab;
use crate::query::query;
use deltabench_server::{DataDirectory, Slot, check_upgrade};
use deltabench_testkit::whole_installation;
use std::sync::atomic::AtomicBool;

#[test]
fn a_directory_is_copied_prepared_and_upgraded_and_stays_as_it_was() {
    let installation = &whole_installation();
    check_upgrade(installation, installation).unwrap();
    let lab = Lab::new();
    let stay = AtomicBool::new(false);
    let mut user = lab.cluster("user", installation);
    let endpoint = user
        .start(
            &Slot {
                port: 5601,
                ..Slot::default()
            },
            &[],
        )
        .unwrap()
        .endpoint
        .clone();
    query(&endpoint, "CREATE TABLE kept (id int)");
    query(
        &endpoint,
        "INSERT INTO kept SELECT generate_series(1, 1000)",
    );
    query(&endpoint, "UPDATE kept SET id = -id");
    user.stop().unwrap();
    let directory = DataDirectory::find(&user.data_dir()).unwrap();

    let mut copy = lab.cluster("copy", installation);
    copy.adopt(&directory, &stay).unwrap();
    let asked = [
        "SELECT rolname FROM pg_catalog.pg_authid WHERE oid = 10",
        "SELECT 'a\"b' AS name",
    ];
    let said = copy
        .single_user("postgres", &asked.map(str::to_owned), &stay)
        .unwrap();
    assert_eq!(said, ["deltabench", "a\"b"]);
    let problem = copy
        .single_user("postgres", &["SELECT 1 / 0".to_owned()], &stay)
        .unwrap_err();
    assert!(problem.detail.unwrap().contains("division by zero"));
    // What failed left it as after a crash: nobody copies that.
    let problem = lab
        .cluster("other", installation)
        .copy_adopted(&copy, &stay)
        .unwrap_err();
    assert!(problem.detail.unwrap().contains("cleanly"));

    let checksums = directory.control().checksums;
    let mut upgraded = lab.cluster_with("upgraded", installation, Some(checksums));
    upgraded.upgrade_from(&user, &stay).unwrap();
    let endpoint = upgraded
        .start(
            &Slot {
                port: 5602,
                ..Slot::default()
            },
            &[],
        )
        .unwrap()
        .endpoint
        .clone();
    let rows = query(
        &endpoint,
        "SELECT count(*), pg_relation_size('kept') / 8192 FROM kept WHERE id < 0",
    );
    let found: Vec<&str> = rows
        .iter()
        .flatten()
        .flatten()
        .map(String::as_str)
        .collect();
    // 1,000 rows take 5 pages; the versions before the update are there, too.
    assert_eq!(found, ["1000", "9"]);
    upgraded.stop().unwrap();
    let after = DataDirectory::find(&user.data_dir()).unwrap();
    assert_eq!(after.control(), directory.control());

    let mut plain = lab.cluster_with("plain", installation, Some(!checksums));
    let problem = plain.upgrade_from(&user, &stay).unwrap_err();
    assert!(problem.detail.unwrap().contains("checksum"));
}
