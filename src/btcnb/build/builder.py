"""The build from end to end: settle, execute what must be, assemble, render."""

from __future__ import annotations

import errno
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import nbformat
from filelock import FileLock, Timeout

from btcnb.build.assemble import assemble
from btcnb.build.chapters import Chapter, load_chapters, select
from btcnb.build.errors import BuildError, UsageError
from btcnb.build.execute import chapter_environment, cores, execute
from btcnb.build.fingerprint import Fingerprint, Stamp, fingerprint, read_stamp, stamp_path, write_stamp
from btcnb.build.imports import Package
from btcnb.build.inputs import digest_path
from btcnb.build.pairs import read_notebook
from btcnb.build.presets import read_file, read_options, read_preset, resolve
from btcnb.build.progress import Progress, duration
from btcnb.build.project import Edition, Output, Project
from btcnb.build.provenance import commit, duration_words, machine, versions
from btcnb.build.records import take_records, write_records
from btcnb.build.render import render
from btcnb.build.status import ChapterState
from btcnb.build.worker import CellStarted, Event, Failed, Finished, Job


@dataclass(frozen=True)
class Request:
    """What the command line asks for."""

    preset: str = "quick"
    only: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    params: Path | None = None
    jobs: int = 1
    edition: Edition = "full"
    force: bool = False
    pages: bool = True  # False: execute only


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
    package: Package
    commit: str = "unknown"
    prints: dict[str, Fingerprint] = field(default_factory=dict)
    failures: list[Failed] = field(default_factory=list)
    executed: list[str] = field(default_factory=list)


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
        progress = Progress(output.log)
        try:
            package = Package(project.source)
            return _run(_Build(project, request, output, progress, chapters, selected, values, package))
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
    first = [chapter for chapter in build.selected if not chapter.options.get("reads_records")]
    last = [chapter for chapter in build.selected if chapter.options.get("reads_records")]
    _execute_all(build, first)
    if last and not build.failures:
        _execute_all(build, last)
    _report_failures(build)
    if not request.pages:
        return None
    return _make_pages(build)


def _execute_all(build: _Build, chapters: Sequence[Chapter]) -> None:
    """Execute those of `chapters` that are not up to date."""
    due = _due(build, chapters)
    unchanged = len(chapters) - len(due)
    progress = build.progress
    progress.say(
        f"Preset {build.request.preset}: {_count(len(due), 'chapter')} to execute, {unchanged} unchanged"
        + (f", {_count(build.request.jobs, 'job')} at a time." if build.request.jobs > 1 else ".")
    )
    if not due:
        return
    progress.total += len(due)
    build.output.partial.mkdir(parents=True, exist_ok=True)
    lanes = min(build.request.jobs, len(due))
    environment = chapter_environment(build.project.source, build.output.records, build.request.preset, lanes)
    by_name = {chapter.name: chapter for chapter in due}
    jobs = [_job(build, chapter, environment) for chapter in due]
    execute(jobs, lanes, build.output.log, lambda event: _on_event(build, by_name, event))


def _due(build: _Build, chapters: Sequence[Chapter]) -> list[Chapter]:
    due = []
    for chapter in chapters:
        stamp, changes = _state(build, chapter)
        if stamp is None or changes or build.request.force:
            due.append(chapter)
            why = "never executed" if stamp is None else ", ".join(changes) or "asked for"
            build.progress.note(f"{chapter.name} is to be executed: {why}")
            if stamp is not None and changes:
                build.progress.say(f"{chapter.name}: changed since it was executed: {why}.")
    return due


def _state(build: _Build, chapter: Chapter) -> tuple[Stamp | None, list[str]]:
    values, records = build.values[chapter.name], build.output.records
    now = fingerprint(build.project, build.package, chapter, values, records)
    build.prints[chapter.name] = now
    stamp = read_stamp(build.output, chapter.name)
    return stamp, now.changes(stamp.fingerprint) if stamp else []


def _job(build: _Build, chapter: Chapter, environment: Mapping[str, str]) -> Job:
    """Only values that differ from the defaults are injected: a page at its defaults shows one parameters cell."""
    return Job(
        chapter=chapter.name,
        notebook=nbformat.writes(chapter.notebook),
        parameters={name: build.values[chapter.name][name] for name in _changed(build, chapter)},
        target=build.output.partial / f"{chapter.name}.ipynb",
        root=build.project.root,
        environment=dict(environment),
    )


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
            progress.end(name, f"done, {_count(cells, 'cell')} in {duration(seconds)}")
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
    write_records(output.records / f"{name}.json", take_records(read_notebook(target)))
    stamp = Stamp(
        chapter=name,
        preset=build.request.preset,
        fingerprint=build.prints[name],
        notebook=digest_path(target),
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
    build.executed.append(name)


def _failure(build: _Build, event: Failed) -> str:
    """Chapter and counts are on the line already: the cell, its first line, the error, and where to look."""
    partial = build.output.partial / f"{event.chapter}.ipynb"
    lines = [
        f"FAILED in cell {event.cell} of {event.cells} after {duration(event.seconds)}" if event.cell else "FAILED"
    ]
    if event.first_line:
        lines.append(f"    cell:     {event.first_line}")
    lines.append("    error:    " + _clip(event.error).replace("\n", "\n              "))
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
    request, progress = build.request, build.progress
    states = list(_states(build))
    complete = assemble(build.project, build.output, request.preset, request.edition, states)
    if not complete:
        missing = ", ".join(state.chapter.name for state in states if not state.stamp)
        progress.say(f"Not executed yet, so without results in the pages: {missing}.")
    progress.working("rendering the pages …")
    rendered = render(build.project, build.output, request.edition, complete, progress.tick)
    if rendered.fresh:
        progress.say(f"Pages rendered in {duration_words(rendered.seconds)}.")
    else:
        progress.say("Pages are up to date.")
    if rendered.warnings:
        progress.note("\n".join(rendered.warnings))
        number = _count(len(rendered.warnings), "warning")
        progress.say(f"{number} tolerated because some chapters are not executed (see the log).")
    return rendered.page


def _states(build: _Build) -> Iterable[ChapterState]:
    for chapter in build.chapters:
        stamp, changes = _state(build, chapter)
        yield ChapterState(chapter, stamp, tuple(changes))


def _clip(text: str, limit: int = 2000) -> str:
    return text if len(text) <= limit else f"{text[:limit]} …"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
