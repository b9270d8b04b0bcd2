"""The build from end to end: settle, execute what must be, assemble, render."""

from __future__ import annotations

import errno
import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import nbformat
from filelock import FileLock, Timeout

from btcnb.book.text import clipped
from btcnb.build.assemble import assemble
from btcnb.build.chapters import Chapter, load_chapters, select
from btcnb.build.errors import BuildError, UsageError
from btcnb.build.execute import chapter_environment, cores, execute
from btcnb.build.fingerprint import (
    Fingerprint,
    Stamp,
    changed_reads,
    fingerprint,
    package_today,
    read_log,
    read_stamp,
    real_data_folder,
    stamp_path,
    write_stamp,
)
from btcnb.build.pairs import read_notebook
from btcnb.build.presets import read_file, read_options, read_preset, resolve
from btcnb.build.progress import Progress, duration
from btcnb.build.project import Edition, Output, Project
from btcnb.build.provenance import commit, duration_words, machine, versions
from btcnb.build.records import take_records, write_records
from btcnb.build.render import Rendered, render
from btcnb.build.status import ChapterState
from btcnb.build.times import record_times
from btcnb.build.warm import SOCKET, WarmProcess, warmable
from btcnb.build.worker import CellStarted, Event, Failed, Finished, Job
from btcnb.digits import count
from btcnb.store.reads import ABSENT, LOG
from btcnb.store.reads import digest as digest_path


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
    """A build under way: what was asked, what was settled, and what has been done so far."""

    project: Project
    request: Request
    output: Output
    progress: Progress
    chapters: list[Chapter]
    selected: list[Chapter]
    values: dict[str, dict[str, Any]]
    commit: str = "unknown"
    prints: dict[str, Fingerprint] = field(default_factory=dict)
    records: dict[str, dict[str, str]] = field(default_factory=dict)  # what others had recorded when a chapter began
    failures: list[Failed] = field(default_factory=list)
    executed: list[str] = field(default_factory=list)
    ending: ExitStack = field(default_factory=ExitStack)  # what ends with the build
    environment: dict[str, str] = field(default_factory=dict)  # of kernels, once a warm process has it


def build(project: Project, request: Request) -> Path | None:
    """Build the book; return the path of its first page (None without pages).

    Everything that can be refused is refused before anything runs. Raises `BuildError` when a chapter fails.
    """
    if request.jobs < 1:
        raise UsageError(f"--jobs {request.jobs}: at least one chapter must run at a time.")
    chapters = load_chapters(project)
    selected = select(chapters, request.only)
    values = _settle(project, request, chapters, selected)
    output = project.output(request.preset)
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
        output.sweep({chapter.name for chapter in chapters})
        progress = Progress(output.log)
        work = _Build(project, request, output, progress, chapters, selected, values)
        try:
            with work.ending:
                return _run(work)
        finally:
            progress.close()
    finally:
        lock.release()


def _settle(
    project: Project, request: Request, chapters: Sequence[Chapter], selected: Sequence[Chapter]
) -> dict[str, dict[str, Any]]:
    layers = [
        read_preset(project.presets, request.preset),
        read_file(request.params) if request.params else [],
        read_options(request.options),
    ]
    known = {chapter.name: chapter.parameters for chapter in chapters}
    return resolve(known, [chapter.name for chapter in selected], layers)


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
    first = [chapter for chapter in build.selected if not chapter.reads_records]
    last = [chapter for chapter in build.selected if chapter.reads_records]
    _execute_all(build, first)
    if last and not build.failures:
        _execute_all(build, last)
    _report_failures(build)
    if request.record_times:
        stamps = filter(None, (read_stamp(build.output, chapter.name) for chapter in build.selected))
        progress.say(f"Running times written to {build.project.relative(record_times(build.project, stamps))}.")
    if not request.pages:
        return None
    return _make_pages(build)


def _execute_all(build: _Build, chapters: Sequence[Chapter]) -> None:
    """Execute those of `chapters` that are not up to date."""
    due = _due(build, chapters)
    unchanged = len(chapters) - len(due)
    progress = build.progress
    progress.say(
        f"Preset {build.request.preset}: {count(len(due), 'chapter')} to execute, {unchanged} unchanged"
        + (f", {count(build.request.jobs, 'job')} at a time." if build.request.jobs > 1 else ".")
    )
    if not due:
        return
    progress.total += len(due)
    build.output.partial.mkdir(parents=True, exist_ok=True)
    lanes = min(build.request.jobs, len(due))
    environment = _environment(build, due, lanes)
    by_name = {chapter.name: chapter for chapter in due}
    jobs = [_job(build, chapter, environment) for chapter in due]
    execute(jobs, lanes, build.output.log, lambda event: _on_event(build, by_name, event))


def _environment(build: _Build, due: Sequence[Chapter], lanes: int) -> dict[str, str]:
    """The environment of the kernels; where several chapters are due, a warm process serves them, and the last."""
    if build.environment:
        return build.environment
    made = chapter_environment(build.project.source, build.output.records, build.request.preset, lanes)
    if len(due) > 1 and warmable(build.project.source):
        cells = [source for chapter in build.selected for source in chapter.code_cells]
        warm = build.ending.enter_context(WarmProcess(cells, made, build.output.log))
        made = build.environment = {**made, SOCKET: str(warm.address)}
    return made


def _due(build: _Build, chapters: Sequence[Chapter]) -> list[Chapter]:
    due = []
    for state in _states(build, chapters):
        if state.stamp is None or state.changes or build.request.force:
            due.append(state.chapter)
            why = "never executed" if state.stamp is None else ", ".join(state.changes) or "asked for"
            build.progress.note(f"{state.chapter.name} is to be executed: {why}")
            if state.stamp is not None and state.changes:
                build.progress.say(f"{state.chapter.name}: changed since it was executed: {why}.")
    return due


def _states(build: _Build, chapters: Sequence[Chapter]) -> Iterable[ChapterState]:
    """How things stand now, code included: what has changed in the package meanwhile is seen."""
    package = package_today(build.project.source / "btcnb")
    seen: dict[Path, str] = {}
    for chapter in chapters:
        now = fingerprint(package, chapter, build.values[chapter.name])
        records = _other_records(build, chapter)
        build.prints[chapter.name], build.records[chapter.name] = now, records
        stamp = read_stamp(build.output, chapter.name)
        changes: list[str] = []
        if stamp:
            known = {**dict.fromkeys(records, ABSENT), **stamp.reads}  # a chapter that has come since had no record
            paths = changed_reads(build.project.root, replace(stamp, reads=known), seen)
            changes = now.changes(stamp.fingerprint) + [f"content of {path}" for path in paths]
        yield ChapterState(chapter, stamp, tuple(changes))


def _other_records(build: _Build, chapter: Chapter) -> dict[str, str]:
    if not chapter.reads_records:
        return {}
    others = [build.output.records / f"{other.name}.json" for other in build.chapters if other.name != chapter.name]
    return {build.project.relative(path): digest_path(path) for path in others}


def _job(build: _Build, chapter: Chapter, environment: Mapping[str, str]) -> Job:
    """Only values that differ from the defaults are injected: a page at its defaults shows one parameters cell."""
    log = _reads(build, chapter.name)
    log.unlink(missing_ok=True)
    return Job(
        chapter=chapter.name,
        notebook=nbformat.writes(chapter.notebook),
        parameters={name: build.values[chapter.name][name] for name in _changed(build, chapter)},
        target=build.output.partial / f"{chapter.name}.ipynb",
        root=build.project.root,
        environment={**environment, LOG: str(log)},
    )


def _reads(build: _Build, chapter: str) -> Path:
    return build.output.partial / f"{chapter}.reads"


def _changed(build: _Build, chapter: Chapter) -> list[str]:
    values = build.values[chapter.name]
    return [name for name, entry in chapter.parameters.items() if values[name] != entry.default]


def _on_event(build: _Build, chapters: Mapping[str, Chapter], event: Event | None) -> None:
    progress = build.progress
    match event:
        case CellStarted(chapter=name, cell=cell, cells=cells):
            progress.cell(name, cell, cells)
        case Finished(chapter=name, cells=cells, seconds=seconds):
            _publish(build, chapters[name], event)
            progress.end(name, f"done, {count(cells, 'cell')} in {duration(seconds)}")
        case Failed(chapter=name):
            if event.disk_full:
                raise OSError(errno.ENOSPC, event.error)
            build.failures.append(event)
            progress.end(name, _failure(build, event))
        case None:
            progress.tick()


def _publish(build: _Build, chapter: Chapter, event: Finished) -> None:
    """The notebook, then its records, then its stamp: killed in between, the chapter counts as not executed."""
    output, name = build.output, chapter.name
    output.notebooks.mkdir(parents=True, exist_ok=True)
    stamp_path(output, name).unlink(missing_ok=True)
    target = output.notebooks / f"{name}.ipynb"
    (output.partial / f"{name}.ipynb").replace(target)
    records = output.records / f"{name}.json"
    write_records(records, take_records(read_notebook(target)))
    stamp = Stamp(
        chapter=name,
        preset=build.request.preset,
        fingerprint=build.prints[name],
        reads={**read_log(_reads(build, name)), **build.records[name]},
        real_data=str(real_data_folder(build.project.root)),
        notebook=digest_path(target),
        records=digest_path(records),
        parameters=json.loads(json.dumps(build.values[name])),
        changed=_changed(build, chapter),
        seconds=round(event.seconds, 2),
        cells=event.cells,
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        commit=build.commit,
        versions=versions(),
        machine=machine(cores()),
    )
    write_stamp(output, stamp)
    _reads(build, name).unlink(missing_ok=True)
    build.executed.append(name)


def _failure(build: _Build, event: Failed) -> str:
    """Chapter and counts are on the line already: the cell, its first line, the error, and where to look."""
    partial = build.output.partial / f"{event.chapter}.ipynb"
    lines = [
        f"FAILED in cell {event.cell} of {event.cells} after {duration(event.seconds)}" if event.cell else "FAILED"
    ]
    if event.first_line:
        lines.append(f"    cell:     {event.first_line}")
    lines.append("    error:    " + clipped(event.error, 2000).replace("\n", "\n              "))
    if partial.exists():
        lines.append(f"    notebook: {build.project.relative(partial)}")
    return "\n".join(lines)


def _report_failures(build: _Build) -> None:
    if not build.failures:
        return
    names = ", ".join(failure.chapter for failure in build.failures)
    verb = "has" if len(build.failures) == 1 else "have"
    raise BuildError(
        f"{names} {verb} failed; the chapters that finished are kept, and the same command goes on from there (log: "
        f"{build.project.relative(build.output.log)})."
    )


def _make_pages(build: _Build) -> Path:
    """Render the editions asked for, each in a process of its own; returns the first page of the first."""
    request, progress = build.request, build.progress
    editions: tuple[Edition, ...] = ("full", "student") if request.edition == "both" else (request.edition,)
    states = list(_states(build, build.chapters))
    executed = [assemble(build.project, build.output, request.preset, edition, states) for edition in editions]
    complete = all(executed)
    if not complete:
        missing = ", ".join(state.chapter.name for state in states if not state.stamp)
        progress.say(f"Not executed yet, so without results in the pages: {missing}.")
    progress.working("rendering the pages …")
    with ThreadPoolExecutor() as pool:  # the first here, where an interrupt is heard
        others = [pool.submit(render, build.project, build.output, each, complete, _silent) for each in editions[1:]]
        first = render(build.project, build.output, editions[0], complete, progress.tick)
    for rendered in (first, *(other.result() for other in others)):
        _told(rendered, progress)
    return first.page


def _silent() -> None:
    """For an edition that is rendered beside another one."""


def _told(rendered: Rendered, progress: Progress) -> None:
    if rendered.fresh:
        progress.say(f"Pages rendered in {duration_words(rendered.seconds)}.")
    else:
        progress.say("Pages are up to date.")
    if rendered.warnings:
        progress.note("\n".join(rendered.warnings))
        number = count(len(rendered.warnings), "warning")
        progress.say(f"{number} tolerated because some chapters are not executed (see the log).")
