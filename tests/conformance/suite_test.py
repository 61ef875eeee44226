"""The suite finds what is wrong: suite_test.py BUILD_ROOT. Each backend of build/tests/conformance has one fault."""

import json
import os
import subprocess
import sys
import tempfile
import shutil
import unittest

BUILD = os.path.abspath(sys.argv.pop(1))
FAULTY = os.path.join(BUILD, "tests", "conformance")
# Faults that tests wait for in vain, and for how long. All others are found as soon as they show, however slow the machine is.
WAITING = {"deaf_aborts": "1", "silent_departures": "1", "global_locks": "1"}
# The tests that must find each fault, which alone are run.
FAULTS = {
    "short_copies": ["copy.to_the_device_and_back", "queue.order"],
    "refused_nothing": ["copy.nothing"],
    "pretended_haste": ["queue.immediate"],
    "used_memory": ["memory.aligned_and_zero", "memory.zero_after_release"],
    "kept_bytes": ["memory.clear"],
    "pretended_launches": ["error.unknown_function"],
    "no_reasons": ["error.absent_device", "error.unknown_setting", "memory.exhaustion"],
    "crashing_waits": ["queue.event_order"],
    "swallowed_late_errors": ["error.unknown_function", "error.late_at_an_event", "error.late_in_another_queue"],
    "errors_lost_by_events": ["error.late_at_an_event"],
    "errors_lost_between_queues": ["error.late_in_another_queue"],
    "eager_captures": ["sequence.kept", "sequence.discard", "sequence.copy_counts"],
    "forgotten_replays": ["sequence.order", "sequence.event_order"],
    "late_arguments": ["sequence.arguments"],
    "stubborn_captures": ["sequence.refusals"],
    "uncounted_replays": ["sequence.copy_counts"],
    "hasty_queries": ["wait.query"],
    "pretended_deadlines": ["wait.deadline", "signal.deadline"],
    "early_signals": ["signal.comes_after_the_work", "signal.between_contexts"],
    "unheeded_signals": ["signal.is_waited_for", "signal.deadline", "signal.between_contexts"],
    "one_for_another": ["signal.is_waited_for", "signal.between_contexts"],
    "captured_signals": ["sequence.refusals"],
    "global_locks": ["signal.keeps_nobody_else"],
    "unheeded_strangers": ["group.events", "group.threads"],
    "separate_clocks": ["group.clock"],
    "late_starts": ["queue.event_times"],
    "unasked_times": ["queue.noted_times"],
    "replays_in_pieces": ["sequence.times"],
    "overfull_infos": ["devices.older_info"],
    "shared_identities": ["devices.identity"],
    "separate_identities": ["devices.identity_in_a_group"],
    "minor_versions_alone": ["devices.info"],
    "unaligned_memory": ["memory.alignment"],
    "used_host_memory": ["memory.of_the_host"],
    "endless_peers": ["devices.peer_link"],
    "no_communication": ["queue.of_every_kind"],
    "supports_nothing": ["compile.supports_an_op"],
    "rare_addresses": ["compile.describes_itself"],
    "fixed_sizes": ["compile.larger_views"],
    "ignored_settings": ["compile.unknown_setting"],
}
# The same for faults of exchanges.
EXCHANGE_FAULTS = {
    "maximal_sums": ["collective.all_reduce", "collective.reduce_scatter", "collective.in_place", "collective.event_order"],
    "ascending_sums": ["collective.tree_sum"],
    "ignored_differences": ["collective.differences"],
    "exchanged_bytes": ["collective.refusals"],
    "unordered_exchanges": ["collective.event_order", "collective.threads"],
    "reversed_ranks": ["collective.all_gather", "collective.broadcast", "collective.reduce_scatter"],
    "wandering_ranks": ["collective.same_bits"],
    "miscounted_exchanges": ["collective.counts"],
    "deaf_aborts": ["collective.abort", "collective.abort_by_a_watcher"],
    "silent_departures": ["collective.departure"],
    "pretended_deadlines": ["collective.late_rank"],
}
# The same for faults of kernels.
KERNEL_FAULTS = {
    "empty_fused_kernels": ["graph.product_and_sum", "graph.elementwise_chain", "graph.training_convolutions"],
    "empty_input_gradients": ["op.conv2d_input_grad.f32", "op.conv2d_input_grad.f64", "graph.training_convolutions"],
    "empty_weight_gradients": ["op.conv2d_weight_grad.f32", "op.conv2d_weight_grad.f64", "graph.training_convolutions"],
    "empty_comparisons": ["op.compare.f32", "op.compare.integer"],
    "ignored_rows": ["op.sum.f32", "op.mean.f32", "op.einsum.f32", "graph.training_products"],
    "refused_no_rows": ["op.sum.f32", "graph.training_products"],
    "nameless_functions": ["op.sum.f32"],
    "negative_needs": ["op.sum.f32"],
    "wrong_layout": ["op.einsum.f32"],
    "no_layout": ["op.einsum.f32"],
    "empty_single_kernels": ["lower_kernels.results"],
    "counted_objects": ["lower_kernels.bytes"],
    "unmarked_stages": ["lower_kernels.results", "lower_kernels.bytes", "lower_kernels.symbols"],
    "objects_of_all": ["lower_kernels.symbols"],
}


def conformance(backend, *flags, folder=FAULTY):
    command = [os.path.join(BUILD, "bin", "sluice"), "conformance", "--backend", backend, "--json", *flags]
    result = subprocess.run(command, text=True, capture_output=True, check=False, timeout=600,
                            env=dict(os.environ, SLUICE_BACKEND_PATH=folder))
    return result.returncode, result.stdout + result.stderr


class SuiteTest(unittest.TestCase):
    def assert_found(self, faults):
        for fault, tests in faults.items():
            for test in tests:
                with self.subTest(fault, test=test):
                    code, report = conformance(fault, "--only", test, "--patience", WAITING.get(fault, "100"))
                    (outcome,) = (each for each in json.loads(report.splitlines()[0])["tests"] if each["test"] == test)
                    self.assertEqual((code, outcome["result"]), (1, "failed"), report)
                    crashes = outcome["detail"].startswith("crashed")
                    self.assertEqual(crashes, fault == "crashing_waits", report)

    def test_every_fault_is_found(self):
        self.assert_found(FAULTS)

    def test_every_fault_of_exchanges_is_found(self):
        self.assert_found(EXCHANGE_FAULTS)

    def test_every_fault_of_kernels_is_found(self):
        self.assert_found(KERNEL_FAULTS)

    def test_a_layout_that_is_none_is_refused_by_name(self):
        _, report = conformance("no_layout", "--only", "op.einsum.f32")
        self.assertIn("backend 'no_layout' proposes no layout for operand 1 of 'sluice.einsum': dimension 0 must be there once",
                      json.loads(report.splitlines()[0])["tests"][0]["detail"])

    def test_errors_may_come_late(self):
        code, report = conformance("late_errors", "--only", "error.")
        results = {test["test"]: test["result"] for test in json.loads(report.splitlines()[0])["tests"]}
        self.assertEqual(code, 0, report)
        self.assertEqual(results["error.late_in_another_queue"], "passed")

    def test_nothing_tested_is_a_failure(self):
        code, report = conformance("late_errors", "--only", "nobody.tests.this")
        self.assertEqual(code, 1)
        self.assertIn("nothing of backend 'late_errors' was tested", report)

    def test_what_is_refused_is_listed_with_its_reason(self):
        code, report = conformance("right_layout", "--only", "compile.")
        self.assertEqual((code, json.loads(report.splitlines()[0])["skipped"]), (0, 0), report)
        code, report = conformance("right_layout", "--only", "op.einsum.f")
        outcomes = {test["test"]: test for test in json.loads(report.splitlines()[0])["tests"]}
        self.assertEqual((code, outcomes["op.einsum.f32"]["result"], outcomes["op.einsum.f64"]["result"]), (0, "passed", "skipped"))
        for outcome in outcomes.values():
            self.assertIn("there is a plain product of two f32 matrices, and nothing else", outcome["detail"])
        self.assertRegex(outcomes["op.einsum.f32"]["detail"], "[1-9][0-9]* cases refused, such as: ")

    def test_graphs_tell_what_was_fused(self):
        _, report = conformance("cpu", "--only", "graph.product_and_sum")
        self.assertIn("einsum+add+relu", json.loads(report.splitlines()[0])["tests"][0]["detail"])

    def test_exclusions_need_a_reason(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(os.path.join(FAULTY, "used_memory.so"), folder)
            exclusions = os.path.join(folder, "used_memory.exclusions")
            with open(exclusions, "w", encoding="utf-8") as out:
                out.write("# why\nmemory.*: it has one use\n")
            code, report = conformance("used_memory", "--only", "memory", folder=folder)
            self.assertEqual((code, json.loads(report.splitlines()[0])["excluded"]), (1, 9))  # nothing else was tried
            with open(exclusions, "w", encoding="utf-8") as out:
                out.write("memory.*\n")
            code, report = conformance("used_memory", folder=folder)
            self.assertEqual(code, 3)
            self.assertIn("is not a test, a colon and a reason", report)

    def test_strictly_nothing_else_is_skipped(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(os.path.join(FAULTY, "right_layout.so"), folder)

            def check(*lines):
                with open(os.path.join(folder, "right_layout.exclusions"), "w", encoding="utf-8") as out:
                    out.writelines(line + "\n" for line in lines)
                code, report = conformance("right_layout", "--strict", "--only", "op.einsum.f", folder=folder)
                return code, {test["test"]: (test["result"], test["detail"]) for test in json.loads(report.splitlines()[0])["tests"]}

            code, found = check("op.einsum.f64: there is f32 alone")
            self.assertEqual((code, found["op.einsum.f64"]), (1, ("excluded", "there is f32 alone")))
            self.assertEqual(found["op.einsum.f16"][0], "failed")
            self.assertIn("it is skipped, and not excluded: unsupported: ", found["op.einsum.f16"][1])
            code, found = check("op.einsum.f*: there is nothing")
            self.assertEqual((code, found["op.einsum.f32"]), (1, ("failed", "it passes, and is excluded: there is nothing")))
            only_f32 = [f"op.einsum.{other}: there is f32 alone" for other in ("f16", "f64")]
            code, found = check(*only_f32)
            self.assertEqual((code, found["op.einsum.f32"][0]), (0, "passed"))
            code, found = check(*only_f32, "op.einsum.f8: there is f32 alone")
            self.assertEqual((code, found["op.einsum.f8"]), (1, ("failed", "it is excluded, and there is no such test")))

    def test_an_absent_backend_is_named(self):
        code, report = conformance("nobody")
        self.assertEqual(code, 4)
        self.assertIn("there is no backend 'nobody'", report)


if __name__ == "__main__":
    unittest.main(verbosity=2)
