'use client';

import { ORIGIN, type Position } from '@interlude/protocol/position';
import { type LogFilter, matchesLine } from '@interlude/protocol/projections/log-filter';
import type { LogExtent, LogLine, LogPage } from '@interlude/protocol/read-models';
import { useSyncExternalStore } from 'react';
import { fetchJson } from '@/components/live/fetch-json';
import type { RowFrame } from '@/components/live/row-frame';
import { inSlice } from '@/components/ui/idle-queue';
import { whenIdle } from '@/components/ui/when-idle';
import { FIRST_LINES, type FirstLog, filterOf, isFiltered, type LogQuery, paramsFromQuery } from './log-query';
import { type Gap, LogWindow, type MissingRow, type Run } from './log-window';

/** The place at which a store opens. */
export type LogAnchor = { kind: 'newest' } | { kind: 'line'; position: Position } | { kind: 'time'; at: number };

const NEWEST: LogAnchor = { kind: 'newest' };
const NEXT_PAGE = 500;
/** Minimum time between renders, however fast lines arrive. */
const RENDER_EVERY_MS = 80;
/** Maximum size of the live text waiting to be matched, in UTF-16 code units. */
const MAX_WAITING = 16 * 1024 * 1024;

/**
 * One view of an agent's log: one filter, kept current.
 *
 * Ordering: the stream is subscribed after the position of the first page. A line in both a page and the stream appears
 * once.
 * Failure: lines that can't be loaded stay missing, and `error` is set until `retry`.
 */
export class LogStore {
  static #count = 0;
  readonly id = ++LogStore.#count;
  readonly agentId: string;
  readonly query: LogQuery;
  readonly filter: LogFilter;
  readonly window: LogWindow;
  /** Position after which the stream continues; null until the first page is loaded. */
  position: Position | null = null;
  extent: LogExtent | null = null;
  error: Error | null = null;
  /** The place at which the store was opened. */
  place: LogAnchor = NEWEST;
  #reader: number | null = null;
  /** Number of lines received live. */
  liveCount = 0;
  readonly #loading = new Map<string, Promise<void>>();
  readonly #failed = new Map<string, () => Promise<void>>();
  readonly #listeners = new Set<() => void>();
  /** Live lines that are not matched yet. */
  readonly #live: LiveMatcher;
  /**
   * Lines matched since the last render. The window changes only on render, so that rows keep their places in between.
   */
  #pending: LogLine[] = [];
  #pendingTo: Position | null = null;
  #version = 0;
  #renderedAt = 0;
  #timer: ReturnType<typeof setTimeout> | null = null;

  constructor(agentId: string, query: LogQuery, filter: LogFilter) {
    this.agentId = agentId;
    this.query = query;
    this.filter = filter;
    this.window = new LogWindow(!isFiltered(query));
    this.#live = new LiveMatcher(filter, MAX_WAITING, {
      matched: (lines, to) => this.#addLive(lines, to),
      skipped: (to) => this.#skipLive(to),
    });
  }

  /** Creates a store from the page that the server sent. */
  static of(agentId: string, { query, page }: FirstLog): LogStore {
    const store = new LogStore(agentId, query, filterOf(query, null));
    store.#insert(page, runOf({ ...page, lines: [...page.lines] }));
    return store;
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Changes with every update. */
  readonly version = (): number => this.#version;

  /** @param line number of the reader's line; null while following the end. Evicts lines far from it */
  readAt(line: number | null): void {
    this.#reader = line;
  }

  isLoading(gap?: Gap): boolean {
    return gap === undefined ? this.#loading.size > 0 : this.#loading.has(keyOf(gap));
  }

  /** Loads the page at a place. The first page determines where the stream continues. */
  open(place: LogAnchor = NEWEST): Promise<void> {
    if (this.position === null) this.place = place;
    return this.#load(`open ${JSON.stringify(place)}`, async () => {
      const page = await this.#read(
        place.kind === 'line' ? { around: place.position } : place.kind === 'time' ? { at: String(place.at) } : {},
        FIRST_LINES,
      );
      if (place.kind !== 'newest') this.#reader = page.lines[page.lines.length >> 1]?.line ?? this.#reader;
      this.#insert(page, runOf(page));
    });
  }

  /** Loads the beginning of the log. */
  openFirst(): Promise<void> {
    return this.#load('first', async () => {
      const page = await this.#read({ after: ORIGIN }, FIRST_LINES);
      this.#reader = page.lines[0]?.line ?? this.#reader;
      this.#insert(page, runAfter(ORIGIN, page));
    });
  }

  /** Loads a page of missing lines: next to a held line, or around the row if none is near. */
  fill(row: MissingRow, from: 'above' | 'below'): Promise<void> {
    const { gap } = row;
    if (row.kind === 'more') return this.fillGap(gap, from);
    const isFar = row.at >= NEXT_PAGE && gap.lines - row.at > NEXT_PAGE;
    return this.fillGap(gap, isFar ? row.line : row.at < NEXT_PAGE && gap.after !== null ? 'above' : 'below');
  }

  /** @param where next to the line above or below, or around a line number */
  fillGap(gap: Gap, where: 'above' | 'below' | number): Promise<void> {
    return this.#load(keyOf(gap), async () => {
      const { after, before } = gap;
      if (typeof where === 'number') {
        const page = await this.#read({ line: String(where) }, NEXT_PAGE);
        // A search that times out without a result continues next to a held line.
        if (page.lines.length > 0) return this.#insert(page, runOf(page));
      }
      if (where === 'above' && after !== null) {
        const page = await this.#read({ after }, NEXT_PAGE);
        this.#insert(page, runAfter(after, page));
      } else {
        const page = await this.#read(before === null ? {} : { before }, NEXT_PAGE);
        this.#insert(page, before === null ? runOf(page) : runBefore(before, page));
      }
    });
  }

  /**
   * Continues a search that timed out before the first page was full. Call it after every change. After a failure it
   * waits for `retry`.
   */
  continueSearch(): void {
    const { older, lineCount } = this.window;
    if (older === null || lineCount >= FIRST_LINES || this.error !== null || this.isLoading()) return;
    void this.fillGap(older, 'below');
  }

  /** Repeats every failed load. */
  retry(): void {
    for (const again of this.#failed.values()) void again();
  }

  applyFrames(frames: readonly RowFrame[]): void {
    const lines: LogLine[] = [];
    for (const frame of frames) {
      if (frame.event !== 'log') continue;
      const { agentId: _, ...line } = frame.data;
      this.#extend(line.line);
      lines.push({ ...line, position: frame.id });
    }
    this.#live.push(lines);
  }

  /** Stops matching live lines. A new subscription starts again at `position`. */
  close(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#live.close();
  }

  #addLive(lines: readonly LogLine[], to: Position): void {
    for (const line of lines) this.#pending.push(line);
    this.#pendingTo = to;
    this.liveCount += lines.length;
    this.#scheduleRender();
  }

  #skipLive(to: Position): void {
    this.#appendPending();
    this.window.skipLive(to);
    this.#scheduleRender();
  }

  #load(key: string, work: () => Promise<void>): Promise<void> {
    const busy = this.#loading.get(key);
    if (busy) return busy;
    const load = this.#attempt(key, work).finally(() => {
      this.#loading.delete(key);
      this.#render();
    });
    this.#loading.set(key, load);
    this.#scheduleRender();
    return load;
  }

  async #attempt(key: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
      this.error = null;
      this.#failed.delete(key);
    } catch (error) {
      this.error = error as Error;
      this.#failed.set(key, () => this.#load(key, work));
    }
  }

  #read(place: Record<string, string>, limit: number): Promise<LogPage> {
    const params = paramsFromQuery(this.query);
    for (const [name, value] of Object.entries(place)) params.set(name, value);
    params.set('limit', String(limit));
    return fetchJson<LogPage>(`/agents/${encodeURIComponent(this.agentId)}/logs?${params}`);
  }

  #appendPending(): void {
    if (this.#pendingTo === null) return;
    this.window.append(this.#pending, this.#pendingTo);
    this.#pending = [];
    this.#pendingTo = null;
    this.window.trim(this.#reader);
  }

  #insert(page: LogPage, run: Run): void {
    this.#appendPending();
    this.extent = page.log;
    this.window.extend(page.log.firstLine, page.log.lastLine);
    this.window.insert(run);
    if (this.position === null) {
      this.position = page.position;
      this.window.beginLive(page.position);
    }
    this.window.trim(this.#reader);
  }

  #extend(line: number): void {
    if (this.extent === null || line <= this.extent.lastLine) return;
    const { lines, lastLine } = this.extent;
    this.extent = { ...this.extent, lines: lines + line - lastLine, lastLine: line };
  }

  #scheduleRender(): void {
    if (this.#timer !== null) return;
    const wait = this.#renderedAt + RENDER_EVERY_MS - performance.now();
    if (wait <= 0) this.#render();
    else this.#timer = setTimeout(() => this.#render(), wait);
  }

  #render(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#appendPending();
    this.#renderedAt = performance.now();
    this.#version += 1;
    for (const listener of this.#listeners) listener();
  }
}

function keyOf({ after, before }: Gap): string {
  return `${after}/${before}`;
}

/** The run of the newest page, or of a page around a place. */
function runOf({ position, hasMore, hasNewer, lines, searchedTo }: LogPage): Run {
  const from = hasMore ? (searchedTo ?? lines[0]?.position ?? position) : ORIGIN;
  return { from, to: hasNewer ? (lines.at(-1)?.position ?? from) : position, lines };
}

function runBefore(edge: Position, { hasMore, lines, searchedTo }: LogPage): Run {
  return { from: hasMore ? (searchedTo ?? lines[0]?.position ?? edge) : ORIGIN, to: edge, lines };
}

function runAfter(edge: Position, { position, hasMore, lines, searchedTo }: LogPage): Run {
  return { from: edge, to: hasMore ? (searchedTo ?? lines.at(-1)?.position ?? edge) : position, lines };
}

interface LiveMatcherListener {
  /** Receives all matches up to `to`. */
  matched(lines: readonly LogLine[], to: Position): void;
  /** Called when lines up to `to` were skipped without matching. */
  skipped(to: Position): void;
}

/**
 * Matches live lines against the filter, one slice of time at a time: a regular expression may take tens of
 * milliseconds on a line of 64 KiB, and a burst has thousands.
 *
 * Ordering: as received.
 * Failure: a search slower than the log would fall behind forever, so a queue that grows too long is skipped.
 */
export class LiveMatcher {
  readonly #filter: LogFilter;
  readonly #maxChars: number;
  readonly #listener: LiveMatcherListener;
  #waiting: LogLine[] = [];
  /** Number of lines that have been matched. */
  #seen = 0;
  #chars = 0;
  #turn: { cancel(): void } | null = null;

  /** @param maxChars maximum size of the waiting text, in UTF-16 units */
  constructor(filter: LogFilter, maxChars: number, listener: LiveMatcherListener) {
    this.#filter = filter;
    this.#maxChars = maxChars;
    this.#listener = listener;
  }

  push(lines: readonly LogLine[]): void {
    for (const line of lines) {
      this.#waiting.push(line);
      this.#chars += line.message.length;
    }
    // A cheap filter leaves no line waiting.
    if (this.#turn === null) this.#advance();
    if (this.#chars > this.#maxChars) this.#skip();
  }

  close(): void {
    this.#turn?.cancel();
    this.#turn = null;
    this.#forget();
  }

  #advance(): void {
    this.#turn = null;
    const matching: LogLine[] = [];
    inSlice((hasTimeLeft) => {
      do {
        const line = this.#waiting[this.#seen];
        if (line === undefined) return;
        this.#seen += 1;
        this.#chars -= line.message.length;
        if (matchesLine(this.#filter, line)) matching.push(line);
      } while (hasTimeLeft());
    });
    const last = this.#waiting[this.#seen - 1];
    if (this.#seen < this.#waiting.length) this.#turn = whenIdle(() => this.#advance());
    else this.#forget();
    if (last !== undefined) this.#listener.matched(matching, last.position);
  }

  #skip(): void {
    const last = this.#waiting.at(-1) as LogLine;
    this.close();
    this.#listener.skipped(last.position);
  }

  #forget(): void {
    this.#waiting = [];
    this.#seen = 0;
    this.#chars = 0;
  }
}

const never = () => () => {};

/** Selects from a store on every change; null without a store and on the server. */
export function useLogStore<Selected>(store: LogStore | null, select: (store: LogStore) => Selected): Selected | null {
  return useSyncExternalStore(
    store?.subscribe ?? never,
    () => (store === null ? null : select(store)),
    () => null,
  );
}
