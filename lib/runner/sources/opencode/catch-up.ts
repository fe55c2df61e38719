import { fieldsOf, listOf } from '@interlude/protocol/fields';
import { endsOf, isNothing } from '@interlude/protocol/lifecycle/open-session';
import { entryOf, idOf, type NativeEvent } from '../../adapters/opencode/native-event';
import type { OpencodeAdapter } from '../../adapters/opencode/opencode-adapter';
import type { SessionTree } from '../../adapters/opencode/session-tree';
import type { WireFrame } from '../../adapters/wire';
import type { SourceContext } from '../../host/source';
import { noticeEvent } from '../../host/source-commands';
import type { Cursor } from '../../outbox/statements';
import type { WireFeed } from '../../wire/wire-feed';
import type { FollowedSessions, SessionStore } from './followed-sessions';
import { errorText, inDirectory, type OpencodeServer } from './opencode-server';

/**
 * What happened in sessions while nobody listened.
 *
 * Ordering: a session's history is told in its order, each part with the place behind it. What a history does not tell
 * (who is at work, what waits for an answer) is asked for afterwards.
 * Failure: of a server that tells no history the messages are read as they are now.
 */
export interface CatchUpOptions {
  server: OpencodeServer;
  adapter: OpencodeAdapter;
  feed: WireFeed;
  memory: SessionStore;
  context: SourceContext;
  carried: FollowedSessions;
  now: () => number;
}

/** Entries of a history that are stored at once. */
const MOST_AT_ONCE = 200;
const HISTORY: WireFrame = { dir: 'out', msg: { method: 'POST', path: '/sync/history' } };

export class CatchUp {
  readonly #options: CatchUpOptions;

  constructor(options: CatchUpOptions) {
    this.#options = options;
  }

  /** What happened in these root sessions and below them, behind what was told. */
  async read(roots: readonly string[]): Promise<void> {
    const { server, adapter, memory, context, carried } = this.#options;
    const isOpen = (root: string) => !isNothing(context.openWork(carried.idOf(root)));
    // What is under way is understood only with its beginnings, which this process has not read.
    const anew = new Set(roots.filter((root) => !adapter.knows(root) && isOpen(root)));
    const after = new Map<string, number>();
    for (const { id } of adapter.tree.all) {
      const root = adapter.tree.rootOf(id);
      if (roots.includes(root)) after.set(id, anew.has(root) ? -1 : (memory.places.get(id) ?? -1));
    }
    const entries = await readHistory(server, adapter.tree, after);
    if (entries === null) {
      for (const root of roots) await this.#readMessages(root);
      return;
    }
    // Sessions that were begun meanwhile are in it too.
    for (const { event } of entries) if (event.type.startsWith('session.')) adapter.tree.learn(event.data.info);
    const byRoot = new Map<string, HistoryEntry[]>(roots.map((root) => [root, []]));
    for (const entry of entries) {
      const root = adapter.tree.rootOf(entry.event.session ?? '');
      if (carried.isWanted(root)) byRoot.set(root, [...(byRoot.get(root) ?? []), entry]);
    }
    for (const [root, of] of byRoot) {
      await carried.add(root);
      if (anew.has(root)) await this.#recall(root, of);
      await this.#tell(root, of);
    }
  }

  /** Who is at work, and what waits for an answer. */
  async readStates(roots: readonly string[]): Promise<void> {
    const { server, adapter, context, carried } = this.#options;
    // A server begins to run in every folder that it is asked about: only those that matter are.
    const atWork = roots.filter((root) => adapter.isAtWork(root) || !isNothing(context.openWork(carried.idOf(root))));
    for (const directory of new Set(atWork.map((root) => carried.directoryOf(root)))) {
      const paths = ['/session/status', '/permission', '/question'].map((path) => inDirectory(path, directory));
      const answers = await Promise.all(paths.map((path) => server.request('GET', path)));
      const busy = fieldsOf(answers[0]?.body);
      const here = atWork.filter((root) => carried.directoryOf(root) === directory);
      // What ended just before it was asked about has its end in the history by now.
      if (here.some((root) => !Object.hasOwn(busy, root))) await this.read(here);
      for (const [at, path] of paths.entries()) {
        await this.#pass([
          { dir: 'out', msg: { method: 'GET', path } },
          { dir: 'in', msg: answers[at] },
        ]);
      }
    }
  }

  /** What the process before this one has told is read again, so that what follows is understood. */
  async #recall(root: string, entries: readonly HistoryEntry[]): Promise<void> {
    const { adapter, memory, context, carried, now } = this.#options;
    const sessionId = carried.idOf(root);
    const open = context.openWork(sessionId);
    const told = entries.filter(({ event }) => memory.isTold(event)).map(({ raw }) => raw);
    const frames: WireFrame[] = [HISTORY, { dir: 'in', msg: { status: 200, body: told } }];
    const before = { runId: open.turn?.runId ?? null, requests: open.requests, said: memory.said };
    adapter.recall(root, frames, before, now());
    // A turn of which there is no beginning: nothing will tell how it ended.
    if (open.turn === null || open.turn.runId === adapter.runOf(root)) return;
    await context.emit(sessionId, endsOf({ ...open, tasks: [], requests: [] }, sessionId, now()));
  }

  async #tell(root: string, entries: readonly HistoryEntry[]): Promise<void> {
    const { memory, carried } = this.#options;
    const news = entries.filter(({ event }) => !memory.isTold(event));
    for (let at = 0; at < news.length; at += MOST_AT_ONCE) {
      const some = news.slice(at, at + MOST_AT_ONCE);
      const cursors = new Map<string, Cursor>();
      for (const { event } of some) for (const cursor of memory.of(event)) cursors.set(cursor.name, cursor);
      const answer: WireFrame = { dir: 'in', msg: { status: 200, body: some.map(({ raw }) => raw) } };
      await this.#pass([HISTORY, answer], [...cursors.values()], carried.idOf(root));
    }
  }

  /**
   * The messages as they are now. Of those of which an earlier process has told anything, nobody knows how much: they are
   * read, and not told.
   */
  async #readMessages(root: string): Promise<void> {
    const { server, adapter, memory, context, carried, now } = this.#options;
    const sessionId = carried.idOf(root);
    const open = context.openWork(sessionId);
    const isAnew = !adapter.knows(root);
    if (isAnew && !isNothing(open)) {
      const text = 'The runner was away, and OpenCode has no history of that time: the rest of this is not shown.';
      await context.emit(sessionId, [...endsOf(open, sessionId, now()), noticeEvent(text, 'warning', now())]);
    }
    const sessions = [...adapter.tree.all].filter(({ id }) => adapter.tree.rootOf(id) === root);
    for (const { id, directory } of sessions) {
      const path = inDirectory(`/session/${encodeURIComponent(id)}/message`, directory);
      const answer = await server.request('GET', path);
      if (answer.status !== 200) throw new Error(errorText(answer));
      const request: WireFrame = { dir: 'out', msg: { method: 'GET', path } };
      const saying = (body: unknown[]): WireFrame[] => [request, { dir: 'in', msg: { status: 200, body } }];
      const idIn = (message: unknown) => idOf(fieldsOf(fieldsOf(message).info).id) ?? '';
      const begun = isAnew ? (memory.begun.get(id) ?? '') : '';
      const all = listOf(answer.body);
      const nothing = { runId: null, requests: [], said: new Map<string, string>() };
      if (begun !== '') adapter.recall(root, saying(all.filter((message) => idIn(message) <= begun)), nothing, now());
      const newest = all.map(idIn).toSorted().at(-1) ?? '';
      const cursors = memory.begins(id, newest);
      await this.#pass(saying(all.filter((message) => idIn(message) > begun)), cursors, sessionId);
    }
  }

  /** A request with its answer: nothing comes between them. */
  async #pass(frames: readonly WireFrame[], cursors: readonly Cursor[] = [], ofSession?: string): Promise<void> {
    const { feed } = this.#options;
    await Promise.all(
      frames.map((frame) => (frame.dir === 'out' ? feed.pass(frame) : feed.pass(frame, cursors, ofSession))),
    );
  }
}

/** An entry of a session's history, as the server tells it. */
interface HistoryEntry {
  raw: unknown;
  event: NativeEvent;
}

/** The server names each session in one condition, of which its database takes a thousand. */
const MAX_NAMED = 900;
const ALL = Number.MAX_SAFE_INTEGER;
const ANSWER_WITHIN_MS = 60_000;

/**
 * What happened in sessions behind the places that are known, in its order.
 *
 * Failure: the server tells of every session that is not named in full. With more sessions than can be named, and by a
 * server that tells no history, nothing is read.
 *
 * @param after by session, the last place that is known; -1 for its whole history
 * @returns null where no history can be had
 */
async function readHistory(
  server: OpencodeServer,
  tree: SessionTree,
  after: ReadonlyMap<string, number>,
): Promise<HistoryEntry[] | null> {
  if (after.size === 0) return [];
  const named: Record<string, number> = {};
  for (const { id } of tree.all) named[id] = ALL;
  for (const [id, place] of after) {
    if (place < 0) delete named[id];
    else named[id] = place;
  }
  if (Object.keys(named).length > MAX_NAMED) return null;
  const { status, body } = await server.request('POST', '/sync/history', named, ANSWER_WITHIN_MS);
  if (status !== 200 || !Array.isArray(body)) return null;
  return inOrder(listOf(body));
}

/** Within a session by place; of several sessions as their ids say, which begin with the time. */
function inOrder(body: readonly unknown[]): HistoryEntry[] {
  const entries = body.flatMap((raw) => {
    const event = entryOf(raw);
    return event === null || event.session === null ? [] : [{ raw, event }];
  });
  const bySession = new Map<string | null, HistoryEntry[]>();
  for (const entry of entries) {
    const of = bySession.get(entry.event.session);
    if (of === undefined) bySession.set(entry.event.session, [entry]);
    else of.push(entry);
  }
  for (const of of bySession.values()) of.sort((a, b) => (a.event.seq ?? 0) - (b.event.seq ?? 0));
  const next = new Map<string | null, number>();
  return entries
    .toSorted((a, b) => ((a.event.id ?? '') < (b.event.id ?? '') ? -1 : 1))
    .flatMap(({ event: { session } }) => {
      const at = next.get(session) ?? 0;
      next.set(session, at + 1);
      return bySession.get(session)?.[at] ?? [];
    });
}
