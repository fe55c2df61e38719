'use client';

import { comparePositions, ORIGIN, type Position } from '@interlude/protocol/position';
import {
  abandonOlder,
  awaitOlder,
  type TranscriptState,
  transcriptFromPage,
} from '@interlude/protocol/projections/transcript-state';
import type { TranscriptPage } from '@interlude/protocol/read-models';
import { useEffect } from 'react';
import { fetchJson } from '@/components/live/fetch-json';
import { FoldedSnapshot } from '@/components/live/folded-snapshot';
import { entriesOf, type RowFrame } from '@/components/live/row-frame';
import { useFolded, useSelected } from '@/components/live/use-folded';
import { FIRST_PAGE } from './first-page';

/** The outcome of a lookup. An error gives the reason the lookup failed. */
export type SeekResult = 'there' | 'missing' | Error;

/** Reads a page of a transcript. */
export type ReadPage = (
  sessionId: string,
  range: { before?: string; limit: number },
  signal?: AbortSignal,
) => Promise<TranscriptPage>;

const OLDER_PAGE = 60;
/** Page size of a lookup, which reads few large pages. */
const SEEK_PAGE = 200;
const IDLE = { isLoading: false, error: null };

type Projections = typeof import('@interlude/protocol/projections/transcript');
let projections: Projections | undefined;

/** Loads the code that live events and older turns need. The newest page is shown without it. */
export async function loadProjections(): Promise<Projections> {
  projections ??= await import('@interlude/protocol/projections/transcript');
  return projections;
}

/** A session's transcript as far as it is loaded, kept current. Loads older turns on demand. */
export class TranscriptStore extends FoldedSnapshot<TranscriptState> {
  readonly #readOlder: (before: string, limit: number) => Promise<TranscriptPage>;
  #older: { isLoading: boolean; error: Error | null } = IDLE;
  #loading: Promise<boolean> | null = null;
  /** Frames that wait for the projections. */
  #early: RowFrame[] = [];

  /** @param turns size of the newest page */
  constructor(
    sessionId: string,
    initial: TranscriptPage | null,
    readPage: ReadPage = fetchPage,
    turns: number = FIRST_PAGE,
  ) {
    // The oldest turn ever shown. A lagging server's snapshot may lack it, but the next snapshot must still reach it.
    let reach: Position | undefined;
    super({
      initial: initial === null ? undefined : transcriptFromPage(initial),
      read: async (signal, shown) => {
        const state = readBackTo(
          turns,
          (before, limit) => readPage(sessionId, { ...before, limit }, signal),
          () => {
            const from = shown()?.from;
            if (from && (!reach || comparePositions(from, reach) < 0)) reach = from;
            return reach;
          },
        );
        return (await Promise.all([state, loadProjections()]))[0];
      },
      fold: (state, frames) => (projections as Projections).foldTranscript(state, entriesOf(frames)),
    });
    this.#readOlder = (before, limit) => readPage(sessionId, { before, limit });
  }

  /** State of loading older turns. */
  get older() {
    return this.#older;
  }

  override applyFrames(frames: readonly RowFrame[]): void {
    if (projections !== undefined && this.#early.length === 0) {
      super.applyFrames(frames);
      return;
    }
    this.#early.push(...frames);
    // After a failure, the next frames try again.
    loadProjections().then(
      () => super.applyFrames(this.#early.splice(0)),
      () => {},
    );
  }

  /** @throws also if a concurrent change made the result incomplete */
  override async read(signal: AbortSignal): Promise<Position> {
    const position = await super.read(signal);
    if (this.value?.incomplete) throw new Error('The transcript changed while it was loading. Try again.');
    return position;
  }

  /** @returns true if older turns were loaded */
  readonly loadOlder = (limit: number = OLDER_PAGE): Promise<boolean> => {
    this.#loading ??= this.inOrder(() => this.#load(limit)).finally(() => {
      this.#loading = null;
    });
    return this.#loading;
  };

  /** Loads older turns until `isThere` holds. */
  readonly seek = async (isThere: (state: TranscriptState) => boolean): Promise<SeekResult> => {
    for (;;) {
      if (this.value !== undefined && isThere(this.value)) return 'there';
      if (!this.value?.hasMore) return 'missing';
      if (!(await this.loadOlder(SEEK_PAGE))) return this.#older.error ?? 'missing';
    }
  };

  async #load(limit: number): Promise<boolean> {
    if (!this.value?.hasMore || this.value.from === null) return false;
    const { from } = this.value;
    this.#older = { isLoading: true, error: null };
    this.set(awaitOlder(this.value));
    try {
      const known = this.position ?? ORIGIN;
      const [{ prependTurns }, page] = await Promise.all([loadProjections(), this.#readOlder(from, limit)]);
      const longer = prependTurns(this.value, notBefore(known, page));
      this.#older = IDLE;
      this.set(longer);
      return true;
    } catch (error) {
      this.#older = { isLoading: false, error: error as Error };
      this.set(abandonOlder(this.value));
      return false;
    }
  }
}

function fetchPage(...[sessionId, range, signal]: Parameters<ReadPage>): Promise<TranscriptPage> {
  const search = new URLSearchParams(Object.entries(range).map(([name, value]) => [name, String(value)]));
  return fetchJson(`/sessions/${encodeURIComponent(sessionId)}/transcript?${search}`, signal);
}

/** Reads the newest page, and older ones as far back as the reader has loaded. */
async function readBackTo(
  turns: number,
  read: (before: { before?: string }, limit: number) => Promise<TranscriptPage>,
  oldestShown: () => Position | undefined,
): Promise<TranscriptState> {
  let state = transcriptFromPage(await read({}, turns));
  for (;;) {
    const { from, hasMore } = state;
    const goal = oldestShown();
    if (!goal || !from || !hasMore || comparePositions(from, goal) <= 0) return state;
    const [{ prependTurns }, page] = await Promise.all([loadProjections(), read({ before: from }, SEEK_PAGE)]);
    state = prependTurns(awaitOlder(state), notBefore(state.position, page));
  }
}

/** Rejects a page from a lagging server, which doesn't know the latest changes of these turns. */
function notBefore(known: Position, page: TranscriptPage): TranscriptPage {
  if (comparePositions(page.position, known) >= 0) return page;
  throw new Error('The server’s response was out of date. Try again.');
}

/**
 * A session's transcript, kept current.
 *
 * @param initial the part that the server sent, if any
 * @param turns number of turns that are loaded at first
 */
export function useTranscript(sessionId: string, initial: TranscriptPage | null, turns: number = FIRST_PAGE) {
  const transcript = useFolded(
    ['transcript', sessionId, String(turns)],
    `session:${sessionId}`,
    () => new TranscriptStore(sessionId, initial, fetchPage, turns),
  );
  useEffect(() => void loadProjections().catch(() => {}), []);
  // An event moved an item out of a turn that is not loaded. Only the server knows the item.
  const isIncomplete = useSelected(transcript.store, ({ value }) => value?.incomplete ?? false);
  const { refetch } = transcript.query;
  useEffect(() => {
    if (isIncomplete) void refetch();
  }, [isIncomplete, refetch]);
  return transcript;
}
