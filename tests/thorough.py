"""The tests that `make test` leaves to `make test-thorough` and `make test-all`, with reasons.

CI runs `make test` and `make test-thorough`: all tests except `EXHAUSTIVE`.

`make test` keeps every room, every contract on 4.3.1 over brokers and on 3.9.1 over ZooKeeper, the main journeys, and a
kill of each command that writes (`tests/cli/test_kill_smokes.py`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

THOROUGH: Final = {
    "2.8.2": "a third generation of brokers; make test runs 3.9.1 for clusters with ZooKeeper",
    "kafka_282": "a third generation of brokers; make test runs 3.9.1 for clusters with ZooKeeper",
    "test_the_second_start_needs_no_network": "brokers of the oldest release, started twice",
    "test_a_second_execute_names_the_process_of_the_first[3.9.1 ZooKeeper]": "the same processes as on 4.3.1",
    "3.9.1 Admin API": "the same store as on 4.3.1, against older brokers",
    "[3.9.1]": "the same store as on 4.3.1, against older brokers",
    "tests/packaging/": "builds and installs the wheel",
    "tests/spark/test_engines.py": "Spark on a cluster and over Spark Connect; make test runs local mode",
    "tests/spark/test_archive.py": "writes class archives of two Javas",
    "tests/spark/test_compact.py": "a history of many files",
    "test_predictions_and_sums_are_in_json": "a Spark job of its own; the document of another one is applied",
    "test_traces_that_are_refused": "two of them start Spark; the other refusals stay",
    "tests/spark/test_trace_usage.py": "the use of a trace against sums in Python; the whole command stays",
    "tests/spark/test_usage.py": "compacted usage against sums in Python; the whole command stays",
    "tests/spark/test_trace.py": "the trace again inside Spark, against the walk in Python",
    "test_the_whole_estimate_command_on_spark[sizes-json]": "another Spark job; its text stays",
    "test_the_whole_estimate_command_on_spark[history": "two Spark jobs; the text of another one stays",
    "test_a_trace_is_a_source_of_use": "a Spark job of its own; advice from snapshots stays",
    "test_every_host_sees_a_large_plan_and_only_its_end_remains": "a plan of many znodes; the other plans stay",
    "test_a_foreign_document_makes_the_same_quotas_on_another_day": "each format on brokers; their laws stay",
    "tests/cli/test_configs_random.py": "random command lines against Kafka's own tool",
    "tests/cli/test_resource_configs_random.py": "random command lines against Kafka's own tool",
    "tests/cli/test_reassign_peers.py": "differences to Kafka's own tool",
    "tests/cli/test_kafka_options.py": "Kafka's own tools of three releases; their options change only with a release",
    "tests/cli/test_reassign_kill.py": "kquota killed at each of its steps; tests/cli/test_kill_smokes.py has one each",
    "tests/cli/test_move_watch.py": "a move of a minute on brokers of its own; the fake does the same in virtual time",
    "tests/cli/test_move_symptoms.py": "faults during moves on brokers of their own; the same findings on fakes stay",
    "tests/cli/test_move_run_pace.py": "brokers with exporters, and a baseline of half a minute; the rules stay",
    "test_a_killed_apply_is_completed_by_the_next_apply": "1,200 quotas; a small document, killed in the middle, stays",
    "test_ten_waves_survive_five_kills": "a second move in waves, killed five times; one killed once stays",
    "test_an_unclean_election_gives_a_partition_a_leader_again": "brokers killed; the election of a fake stays",
    "test_trouble_outside_the_plan_undoes_the_move": "a broker killed during a move; the refusal before a move stays",
    "test_a_throttle_that_follows_the_clients": "a baseline of half a minute on brokers; the fake stays",
    "test_a_killed_kquota_leaves_the_throttle_of_the_last_lost_replica": "a baseline on brokers, and a broker stopped",
    "tests/cli/test_command_rights.py": "a hundred commands on brokers of their own; test_rights.py stays",
    "tests/cli/test_dead_brokers.py": "brokers killed and started again; the same rules on fakes stay",
    "tests/cli/test_server_faults.py": "servers killed and stopped during moves; the same rounds on fakes stay",
    "tests/cli/test_three_hosts.py": "random commands of three hosts on real brokers; the same rounds on fakes stay",
    "tests/cli/test_quota_levels.py": "throttled clients of eight levels on brokers with exporters; one level stays",
    "tests/stores/test_precedence_enforced.py": "the eight levels of quotas, measured on brokers",
    "tests/stores/test_ips_enforced.py": "connection limits, measured on brokers",
    "tests/simulate/test_kafka.py": "the simulation against Kafka's own classes, for each release",
    "tests/documents/": "every command of every document",
    "3.9.1 ZooKeeper-a topic": "the record in a topic over both connections; each alone stays",
    "test_a_download_that_is_killed": "a download of Kafka, killed and begun again",
    "tests/stores/record/test_lost_leader.py": "a broker of the record killed and stopped",
    "tests/stores/admin/test_tiered.py": "brokers with remote storage, under load for half a minute",
    "tests/stores/admin/test_closed_connections.py": "brokers with limits on connections",
    "tests/stores/admin/test_throttled.py": "brokers that throttle our own connection, for ten seconds a time",
    "test_the_sequence_outlives_every_record_of_its_batch": "a compaction of the record's topic",
    "test_a_quota_on_our_own_client_delays_an_append": "a quota on kquota's own client",
    "test_execute_waits_until_the_move_has_ended": "a move of 25 s, on each connection; the same lines on fakes stay",
    "test_there_and_back_and_there_again": "three moves, one after the other",
    "tests/spark/test_history.py": "histories of several batches; an estimate from one snapshot stays",
    "tests/spark/test_move.py": "a whole estimate in a process of its own, with an operator's limits",
    "test_the_middle_of_a_move_counts_what_is_left": "two estimates during a slow move; the same inputs on fakes stay",
    "tests/stores/test_apply.py": "ten thousand quotas",
    "test_a_full_log_dir_is_relieved": "a broker with three log dirs, and 12 s of throttled copies",
    "test_the_limits_leaders_and_destinations_of_a_run_do_not_make_time_left_wrong": "random moves; a table stays",
    "test_a_cordoned_log_dir_takes_no_part": "the same broker; a cordoned broker of three stays",
    "tests/cli/test_hosts.py": "two hosts in every case; one journey of each kind stays",
    "tests/cli/test_record_rights.py": "the record under each missing right",
    "tests/cli/test_rights.py": "each command under each missing right",
    "tests/cli/test_probe.py": "real clients at their quotas, for a minute",
    "tests/cli/test_probe_client.py": "real clients at their quotas, for half a minute",
    "test_a_topic_that_is_deleted_and_created_again_during_its_move": "a rare race, on each connection",
    "tests/sandbox/test_crash.py": "a sandbox killed at each of its steps",
    "tests/spark/test_plans.py": "plans of many files",
    "tests/spark/test_report.py": "the report of a whole estimate; the report's own tests stay",
    "tests/spark/test_failure.py": "an engine that fails in each way",
    "tests/spark/test_jvm.py": "both Javas",
    "more brokers than a picture holds": "large pictures",
    "test_with_too_many_links_to_simulate": "a plan of very many links",
    "tests/spark/test_estimate.py": "the sums on Spark, for many plans; the whole command stays",
    "tests/spark/test_live.py": "estimates of a live cluster",
    "tests/spark/test_move_effect.py": "the sums of a report",
    "test_a_paused_twin_writes_nothing_after_a_takeover": "a process stopped at each of its writes; fakes stay",
    "test_kafkas_own_tool_reads_the_same_file": "each security protocol, with Kafka's own tool",
    "test_no_secret_is_visible": "each security protocol, with and without tracebacks",
    "test_an_unanswered_handshake_ends_by_the_deadline": "servers that never answer",
    "test_an_open_filter_matches_the_entities_of_kafkas_tool[kafka_391]": "each release, with Kafka's own tool",
    "test_a_client_of_brokers_on_zookeeper_logs_in": "a broker of its own; the keys in a znode stay",
    "test_scram_over_the_admin_api_is_printed_like_kafka": "each release, with Kafka's own tool",
    "test_a_move_of_kafkas_tool_is_cancelled_with_kafkas_messages": "a second journey of --cancel",
    "test_one_resume_of_two_runs_restores_all_rates": "a second journey of move resume",
    "test_the_throttle_changes_while_waves_wait": "a second move in waves; the same rules on fakes stay",
    "test_the_limit_holds_on_the_cluster": "a third move in waves; the same rules on fakes stay",
    "test_waves_wait_while_a_partition_outside_the_plan_is_unhealthy": "a broker killed during a move; fakes stay",
    "test_bytes_in_flight_stay_below_their_limit": "a move of half a minute; the same rules on fakes stay",
    "test_a_pause_stops_the_copies_and_delays_no_follower": "half a minute of copies; a second pause stays",
    "test_the_throttle_follows_the_time_of_day": "the end of a span, for which it waits up to a minute and a half",
    "test_trouble_outside_the_plan_refuses_the_move": "a broker killed before a move; the same rules on fakes stay",
    "test_a_throttle_below_the_write_rate_is_refused_unless_forced": "a load for ten seconds; the rules stay",
    "test_export_applied_to_an_empty_cluster_exports_the_same_bytes": "all forms of quotas on brokers; the law stays",
    "test_replication_throttles_in_a_document[4.3.1 Admin API]": "the journey on ZooKeeper stays",
    "test_the_jobs_follow_a_move_and_report_that_it_was_taken_back[3.9.1 ZooKeeper]": "the journey on 4.3.1 stays",
    "test_no_replica_returns_to_a_dead_broker": "a broker killed and started again; the same rules on fakes stay",
    "test_a_returning_broker_is_throttled_until_it_is_in_sync": "a broker killed and started again; fakes stay",
    "test_a_running_move_gets_another_throttle[4.3.1 Admin API-a deadline]": "a second move; a rate stays",
    "test_a_long_input_takes_memory_and_time_in_proportion": "two long inputs for each reader; their limits stay",
    "test_a_large_input_takes_at_most_eight_times_its_size": "a large input for each reader; their limits stay",
    "test_an_answer_takes_at_most_eight_times_its_size": "large answers of exporters; the limit stays",
    "test_junk_is_refused_before_it_takes_much_more_memory_than_its_text": "long texts; the count of memory stays",
    "test_a_hundred_thousand_leftovers_are_read_back": "a hundred thousand leftovers; a few stay",
    "tests/spark/test_log_dir_moves.py": "a Spark session for sums; the whole estimate on Spark stays",
}
"""Parts of the ids of thorough tests, each with the reason why the test takes too long for a first run."""
TIMED: Final = (
    "tests/cli/test_move_run_pace.py",
    "tests/cli/test_move_watch.py",
    "tests/cli/test_move_symptoms.py",
    "tests/cli/test_probe.py",
    "tests/cli/test_probe_client.py",
    "tests/cli/test_quota_levels.py",
    "tests/cli/test_quota_top.py",
    "tests/spark/test_live.py",
    "tests/stores/admin/test_throttled.py",
    "tests/stores/admin/test_tiered.py",
    "tests/stores/test_ips_enforced.py",
    "tests/stores/test_precedence_enforced.py",
)
"""Thorough tests that fail if four workers keep the machine busy: exporters that do not answer, copies that pause."""
EXHAUSTIVE: Final = {
    "test_each_documented_permission_is_needed": "a command for each missing permission; that they are enough stays",
    "test_another_host_ends_the_run[BOTH": "the record over both connections; each connection alone stays",
    "test_another_host_ends_the_run[KRAFT source SIGSTOP arrived": "a stopped destination at the same step stays",
    "test_another_host_ends_the_run[KRAFT destination SIGKILL recorded": "a killed source at the same step stays",
    "restart_of_a_broker[3.9.1 Admin API]": "ten waves on older brokers; those on 4.3.1 stay",
    "test_there_and_back_and_there_again_are_three_runs[3.9.1 ZooKeeper]": "the three moves on 4.3.1 stay",
    "test_killed_at_each_step[3.9.1 Admin API": "the same steps on 4.3.1, and those in ZooKeeper, stay",
    "test_a_paused_twin_writes_nothing_after_a_takeover[9-": "every second write of the twin stays",
    "test_a_paused_twin_writes_nothing_after_a_takeover[11-": "every second write of the twin stays",
    "test_a_paused_twin_writes_nothing_after_a_takeover[13-": "every second write of the twin stays",
    "test_an_archive_is_installed_only_if_the_jvm_ended_with_code_0": "several archives; one of any Java stays",
    "test_compacted_days_give_the_same_advice": "four Spark jobs; tests/spark/test_usage.py has the same in one",
    "test_more_brokers_shrink_limits_that_are_per_broker": "two Spark jobs on brokers; their values are pure",
    "used_and_harmless_if_damaged[the wheel's Java]": "an archive of a second Java, which takes eight minutes",
}
"""Thorough tests that CI leaves to `make test-all`, with reasons. A slow machine would need over 90 minutes."""
KEPT: Final = (
    "tests/documents/test_shown.py",
    "tests/documents/test_bench.py",
    "test_every_host_sees_a_run_and_any_host_can_end_it[4.3.1 Admin API-a topic]",
    "test_a_run_continues_over_the_other_connection[--zookeeper-3.9.1 ZooKeeper-znodes]",
    "test_doctor_leaves_throttles_of_other_hosts_unchanged[4.3.1 Admin API-a topic]",
    "test_two_moves_on_the_same_brokers[a topic-order0-4.3.1 Admin API]",
    "test_no_secret_is_visible[SCRAM-SHA-512 over TLS",
)
"""Parts of the ids of tests that run in all cases."""
PROCESSES: Final = (
    "tests/cli/",
    "tests/completions/",
    "tests/documents/",
    "tests/fuzz/test_guided.py",
    "tests/man/",
    "tests/packaging/",
    "tests/sandbox/",
    "tests/spark/",
    "tests/stores/admin/test_tiered.py",
    "tests/test_quota_keys.py",
    "test_importing_kquota_loads_no_client",
)
"""Tests that start processes. `make unit` omits them."""
SLOW: Final = (
    "tests/reassign/test_kill.py",
    "tests/reassign/test_waves.py",
    "tests/simulate/test_trace.py",
    "tests/simulate/test_kafka.py",
    "tests/placement/test_generate_kafka.py",
    "tests/probe/test_load.py",
    "tests/hosts/",
    "tests/watch/test_waves.py",
    "tests/watch/test_view.py::test_from_a_quarter_on",
    "tests/placement/test_plan_laws.py",
    "tests/placement/test_log_dir_balance.py",
    "tests/pace/test_past_moves.py",
    "tests/pace/test_protection.py",
    "tests/throttle/test_killed.py",
    "tests/fuzz/test_readers.py::test_a_mutated_example",
    "tests/simulate/test_steady.py",
    "tests/cli/contracts/test_adjust.py",
    "tests/cli/contracts/test_suggested_commands.py",
    "tests/cli/contracts/test_quota.py::test_simulations",
    "test_the_text_and_the_json_of_moves_between_log_dirs",
    "test_clients_of_one_principal_take_turns",
    "test_no_client_starves_when_the_rate_is_unreadable",
    "test_a_run_of_many_topics_with_one_partition_each_is_read_back",
    "test_an_import_in_a_function_has_its_reason",
    "test_the_import_contract_covers_every_third_party_library",
    "test_a_list_near_the_maximum_length_of_a_broker",
    "test_both_libraries_accept_every_form_of_a_store",
    "test_an_unusable_store_is_reported",
    "test_errors_name_their_position[nothing but lists]",
    "test_an_interrupted_apply_prints_the_command_that_continues_it",
    "test_a_move_that_progresses_has_no_symptom",
    "test_the_long_run_rate_is_the_quota",
    "tests/reassign/test_limits.py",
    "tests/placement/test_cordons.py",
    "tests/test_counted_json.py",
    "tests/stores/admin/test_wire_format.py",
    "tests/stores/admin/test_attempts.py",
    "tests/stores/admin/test_imports.py",
    "tests/stores/login/test_oauth.py",
    "tests/stores/record/test_topic_record.py",
    "tests/stores/metrics/test_answers.py",
    "tests/test_bounded_readers.py",
    "test_json_that_is_not_valid_or_not_worth_its_memory",
    "test_a_failure_is_explained",
    "test_junk_is_refused_before_it_takes_much_more_memory_than_its_text",
    "at_most_eight_times_its_size",
    "test_ten_thousand_clients_are_read_and_joined",
    "test_a_file_of_topics_has_at_most_100_000",
)
"""Slow rules. `make unit` also omits them."""


def is_thorough(test: str) -> bool:
    """Return True if `make test` leaves out the test with this id."""
    return any(part in test for part in (*THOROUGH, *EXHAUSTIVE)) and not any(part in test for part in KEPT)


def is_exhaustive(test: str) -> bool:
    """Return True if the test with this id runs only in `make test-all`."""
    return any(part in test for part in EXHAUSTIVE)


def is_timed(test: str) -> bool:
    """Return True if the test with this id is thorough and fails on a busy machine."""
    return is_thorough(test) and any(part in test for part in TIMED)


def is_unit(test: str) -> bool:
    """Return True if the test with this id is a rule or a property without a server, a process or a wait."""
    return not is_slow(test) and not any(part in test for part in PROCESSES)


def is_slow(test: str) -> bool:
    """Return True if `make unit` omits the test with this id, even if its module marks it as a unit test."""
    return any(part in test for part in SLOW)


def has_unit_tests(module: Path, root: Path) -> bool:
    """Return False for a test module that `is_unit` excludes, and that marks none of its tests as a unit test."""
    if not (module.name.startswith("test_") and module.suffix == ".py"):
        return True
    path = module.relative_to(root).as_posix()
    return is_unit(path) or ("mark.unit" in module.read_text() and not is_slow(path))
