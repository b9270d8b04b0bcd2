"""The build from end to end: settle all parameters, execute what has changed, assemble the source, render the pages."""

from __future__ import annotations

import csv
import errno
import io
import json
from collections.abc import Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock, Timeout

from btcnb.build import kernels
from btcnb.build.execute import LOGGER, Execution, Progress, chapter_environment, cores, duration, execute
from btcnb.build.fingerprint import (
    ChapterState,
    Fingerprint,
    Stamp,
    changed_reads,
    fingerprint,
    read_log,
    read_stamp,
    real_data_folder,
    stamp_path,
    write_stamp,
)
from btcnb.build.notebooks import Chapter, load_chapters, load_pages, read_notebook, select
from btcnb.build.pages import assemble, duration_words, machine, take_records, versions
from btcnb.build.presets import read_file, read_options, read_preset, resolve
from btcnb.build.project import BuildError, Edition, Output, Project, UsageError, write_atomically
from btcnb.build.render import Rendered, render
from btcnb.digits import count
from btcnb.errors import clipped
from btcnb.store.keys import cell_modules, commit
from btcnb.store.reads import ABSENT, LOG
from btcnb.store.reads import digest as digest_path

STATES = "BTCNB_STATES"
"""Environment variable of a kernel: the file that says how all chapters stand."""


@dataclass(frozen=True)
class Request:
    """What the command line asks for."""

    preset: str = "quick"
    only: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    params: Path | None = None
    jobs: int = 1
    edition: Edition | Literal["both"] = "full"
    force: bool = False
    pages: bool = True  # False: execute only
    record_times: bool = False  # keep the running times for the chapters' cards


@dataclass
class _Build:
    """A build under way: what was asked for, what was settled, and what has been done so far."""

    project: Project
    request: Request
    output: Output
    progress: Progress
    chapters: list[Chapter]
    selected: list[Chapter]
    pages: list[Chapter]
    values: dict[str, dict[str, Any]]
    commit: str = "unknown"
    prints: dict[str, Fingerprint] = field(default_factory=dict)
    records: dict[str, dict[str, str]] = field(default_factory=dict)  # what others had recorded when a chapter began
    failures: list[str] = field(default_factory=list)
    forking: bool = False


def build(project: Project, request: Request) -> Path | None:
    """Build the book; return the path of its first page (None without pages).

    Everything that can be refused is refused before anything runs. Raises `BuildError` when a chapter fails.
    """
    if request.jobs < 1:
        raise UsageError(f"--jobs {request.jobs}: at least one chapter must run at a time.")
    chapters, pages = load_chapters(project), load_pages(project)
    selected = select(chapters, request.only)
    layers = [
        read_preset(project.presets, request.preset),
        read_file(request.params) if request.params else [],
        read_options(request.options),
    ]
    known = {chapter.name: chapter.parameters for chapter in chapters}
    values = resolve(known, [chapter.name for chapter in selected], layers)
    output = project.output(request.preset)
    with _locked(project, output):
        output.sweep({chapter.name for chapter in chapters})
        progress = Progress(output.log)
        try:
            work = _Build(project, request, output, progress, chapters, selected, pages, values)
            return _run(work)
        finally:
            progress.close()


@contextmanager
def _locked(project: Project, output: Output) -> Any:
    output.folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(output.folder / ".lock", timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise BuildError(
            f"Another build is at work in {project.relative(output.folder)}; wait for it to end, or stop it, and run "
            "this one again."
        ) from None
    try:
        yield
    finally:
        lock.release()


def _run(build: _Build) -> Path | None:
    progress, request = build.progress, build.request
    build.commit = commit(build.project.root)
    for chapter in build.chapters:
        if chapter.stale:
            progress.say(
                f"Note: {chapter.name}.md and its pair disagree; {chapter.path.name}, edited last, is used "
                "(`btcnb pair` writes the pair from the text)."
            )
        if not chapter.in_toc:
            progress.say(f"Note: {chapter.name} is not in _toc.yml, so it has no page.")
    for late in (False, True):
        group = [chapter for chapter in build.selected if chapter.reads_records is late]
        if group and not build.failures:
            _execute_due(build, group)
    _report_failures(build)
    if request.record_times:
        stamps = filter(None, (read_stamp(build.output, chapter.name) for chapter in build.selected))
        progress.say(f"Running times written to {build.project.relative(record_times(build.project, stamps))}.")
    if not request.pages:
        return None
    states = list(_states(build, build.chapters))
    write_atomically(build.output.states, json.dumps(_shown_states(build, states), indent=1))
    _execute_due(build, build.pages)
    _report_failures(build)
    return _make_pages(build, [*states, *_states(build, build.pages)])


def _execute_due(build: _Build, chapters: Sequence[Chapter]) -> None:
    """Execute those of `chapters` that are not up to date."""
    due = []
    for state in _states(build, chapters):
        if state.stamp is None or state.changes or build.request.force:
            due.append(state.chapter)
            why = "never executed" if state.stamp is None else ", ".join(state.changes) or "asked for"
            LOGGER.info("%s is to be executed: %s", state.chapter.name, why)
            if state.stamp is not None and state.changes:
                build.progress.say(f"{state.chapter.name}: changed since it was executed: {why}.")
    jobs = build.request.jobs
    if chapters and not chapters[0].is_page:
        build.progress.say(
            f"Preset {build.request.preset}: {count(len(due), 'chapter')} to execute, {len(chapters) - len(due)} "
            "unchanged" + (f", {count(jobs, 'job')} at a time." if jobs > 1 else ".")
        )
    if not due:
        return
    workers = min(jobs, len(due))
    package = build.project.package
    environment = chapter_environment(package, build.output.records, build.request.preset, workers)
    environment[STATES] = str(build.output.states)
    if not build.forking and len(due) > 1 and kernels.forkable(package):
        cells = [source for chapter in [*build.selected, *build.pages] for source in chapter.code_cells]
        kernels.start_fork_server(cell_modules(cells, package), environment, build.output.log)
        build.forking = True
    build.output.partial.mkdir(parents=True, exist_ok=True)
    by_name = {chapter.name: chapter for chapter in due}
    executions = [_execution(build, chapter, environment) for chapter in due]
    execute(executions, workers, build.progress, lambda ended: _on_end(build, by_name[ended.chapter], ended))


def _states(build: _Build, chapters: Iterable[Chapter]) -> Iterable[ChapterState]:
    """How things stand now; changes of the package's code during the build are seen."""
    digests: dict[str, str] = {}
    for chapter in chapters:
        now = fingerprint(build.project.package, chapter, build.values.get(chapter.name, {}), digests)
        records = _other_records(build, chapter)
        build.prints[chapter.name], build.records[chapter.name] = now, records
        stamp = read_stamp(build.output, chapter.name)
        changes: list[str] = []
        if stamp:
            reads = {**dict.fromkeys(records, ABSENT), **stamp.reads}  # a chapter that is new since had no record
            paths = changed_reads(build.project.root, stamp, reads)
            changes = now.changes(stamp.fingerprint) + [f"content of {path}" for path in paths]
        yield ChapterState(chapter, stamp, tuple(changes))


def _other_records(build: _Build, chapter: Chapter) -> dict[str, str]:
    if not chapter.reads_records:
        return {}
    others = [build.output.records / f"{other.name}.json" for other in build.chapters if other.name != chapter.name]
    return {build.project.relative(path): digest_path(path) for path in others}


def _execution(build: _Build, chapter: Chapter, environment: dict[str, str]) -> Execution:
    """Only values that differ from the defaults are injected: a page at its defaults shows one parameters cell."""
    log = _reads(build, chapter.name)
    log.unlink(missing_ok=True)
    return Execution(
        chapter=chapter.name,
        notebook=chapter.notebook,
        parameters={name: build.values[chapter.name][name] for name in _changed(build, chapter)},
        target=build.output.partial / f"{chapter.name}.ipynb",
        root=build.project.root,
        environment={**environment, LOG: str(log)},
        log=build.output.log,
        forked=build.forking,
    )


def _reads(build: _Build, chapter: str) -> Path:
    return build.output.partial / f"{chapter}.reads"


def _changed(build: _Build, chapter: Chapter) -> list[str]:
    return [name for name, entry in chapter.parameters.items() if build.values[chapter.name][name] != entry.default]


def _on_end(build: _Build, chapter: Chapter, execution: Execution) -> None:
    if execution.disk_full:
        raise OSError(errno.ENOSPC, execution.error)
    if execution.error:
        build.failures.append(chapter.name)
        build.progress.end(execution, _failure(build, execution))
        return
    _publish(build, chapter, execution)
    build.progress.end(execution, f"done, {count(execution.cells, 'cell')} in {duration(execution.seconds)}")


def _publish(build: _Build, chapter: Chapter, execution: Execution) -> None:
    """The notebook, then its records, then its stamp: killed in between, the chapter counts as not executed."""
    output, name = build.output, chapter.name
    output.notebooks.mkdir(parents=True, exist_ok=True)
    stamp_path(output, name).unlink(missing_ok=True)
    target = output.notebooks / f"{name}.ipynb"
    execution.target.replace(target)
    records = output.records / f"{name}.json"
    if not chapter.is_page:
        write_atomically(records, json.dumps(take_records(read_notebook(target)), indent=1, ensure_ascii=False) + "\n")
    stamp = Stamp(
        chapter=name,
        preset=build.request.preset,
        fingerprint=build.prints[name],
        reads={**read_log(_reads(build, name)), **build.records[name]},
        real_data=str(real_data_folder(build.project.root)),
        notebook=digest_path(target),
        records=digest_path(records),
        parameters=json.loads(json.dumps(build.values.get(name, {}))),
        changed=_changed(build, chapter),
        seconds=round(execution.seconds, 2),
        cells=execution.cells,
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        commit=build.commit,
        versions=versions(),
        machine=machine(cores()),
    )
    write_stamp(output, stamp)
    _reads(build, name).unlink(missing_ok=True)


def _failure(build: _Build, execution: Execution) -> str:
    """The cell, its first line, the error, and where to look; chapter and counts are on the line already."""
    lines = [f"FAILED in cell {execution.cell} of {execution.cells} after {duration(execution.seconds)}"]
    if not execution.cell:
        lines = ["FAILED"]
    if execution.first_line:
        lines.append(f"    cell:     {execution.first_line}")
    lines.append("    error:    " + clipped(execution.error, 2000).replace("\n", "\n              "))
    if execution.target.exists():
        lines.append(f"    notebook: {build.project.relative(execution.target)}")
    return "\n".join(lines)


def _report_failures(build: _Build) -> None:
    if not build.failures:
        return
    verb = "has" if len(build.failures) == 1 else "have"
    raise BuildError(
        f"{', '.join(build.failures)} {verb} failed; the chapters that finished are kept, and the same command goes on "
        f"from there (log: {build.project.relative(build.output.log)})."
    )


def _shown_states(build: _Build, states: Iterable[ChapterState]) -> dict[str, Any]:
    """What the status page shows of all chapters."""
    chapters = []
    for state in states:
        chapter = {"name": state.chapter.name, "title": state.chapter.title, "in_toc": state.chapter.in_toc}
        stamp = state.stamp
        if stamp is not None:
            wanted = ("parameters", "changed", "seconds", "cells", "finished", "commit", "versions", "machine")
            chapter |= {"since": list(state.changes), **{name: getattr(stamp, name) for name in wanted}}
        chapters.append({**chapter, "executed": stamp is not None})
    return {"preset": build.request.preset, "chapters": chapters}


def record_times(project: Project, stamps: Iterable[Stamp]) -> Path:
    """Write the running times to `results/chapter_times.csv`, for the chapters' cards; times of others stay."""
    from btcnb.book.chapter import recorded_times

    path = project.root / "results" / "chapter_times.csv"
    rows = recorded_times(path) | {(stamp.chapter, stamp.preset): stamp.seconds for stamp in stamps}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("chapter", "preset", "seconds"))
    writer.writerows([*key, f"{seconds:.0f}"] for key, seconds in sorted(rows.items()))
    write_atomically(path, text.getvalue())
    return path


def _make_pages(build: _Build, states: Sequence[ChapterState]) -> Path:
    """Render the editions asked for, side by side; returns the first page of the first."""
    request, progress = build.request, build.progress
    editions: tuple[Edition, ...] = ("full", "student") if request.edition == "both" else (request.edition,)
    assembled = [assemble(build.project, build.output, request.preset, edition, states) for edition in editions]
    complete = all(assembled)
    if not complete:
        missing = ", ".join(state.chapter.name for state in states if not state.stamp)
        progress.say(f"Not executed yet, so without results in the pages: {missing}.")
    progress.show("rendering the pages …")
    rendered = render(build.project, build.output, editions, complete)
    for edition in rendered:
        _tell_rendered(edition, progress)
    return rendered[0].page


def _tell_rendered(rendered: Rendered, progress: Progress) -> None:
    if rendered.fresh:
        progress.say(f"Pages rendered in {duration_words(rendered.seconds)}.")
    else:
        progress.say("Pages are up to date.")
    if rendered.warnings:
        LOGGER.info("%s", "\n".join(rendered.warnings))
        number = count(len(rendered.warnings), "warning")
        progress.say(f"{number} tolerated because some chapters are not executed (see the log).")
