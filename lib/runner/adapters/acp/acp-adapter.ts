import type { RequestOpenedValue } from '@interlude/protocol/ag-ui';
import { type Fields, fieldsOf, textOf, textsOf } from '@interlude/protocol/fields';
import {
  type EmittedEvent,
  earliest,
  setBounded,
  type WireAdapter,
  type WireAdapterOptions,
  type WireEnd,
  type WireFrame,
} from '../wire';
import { boundFrame } from '../writer/size-limits';
import { AcpSession } from './acp-session';
import { type AgentProfile, profileOf } from './agent-profiles';
import { Replay } from './replay';
import { isSessionLost, type RpcError, rpcFrame, rpcKey } from './rpc';
import type { Settings } from './settings';

interface AcpAdapterOptions extends WireAdapterOptions {
  /** Timeout of a request; unlimited by default. */
  answerWithinMs?: number;
}

interface AgentAbout {
  /** Name and version: `OpenCode 1.18.33`. */
  provider: string | null;
  profile: AgentProfile;
}

const MAX_PENDING = 1_000;
const MAX_SESSIONS = 64;
const MAX_EARLY = 64;

/** Frame that the runner records, but never sends, when a watched process of the agent has ended. */
export const PROCESS_ENDED = '_interlude/process_ended';

const RESTARTED: WireEnd = { reason: 'for an unknown reason', goesOn: 'It was restarted.' };

/**
 * Translates an ACP agent over stdio: JSON-RPC frames in both directions, across restarts of its process.
 *
 * A frame belongs to the session in its `sessionId`, or to the session of the request it answers. Updates count at any
 * time, not only during a prompt. Interlude's `session/prompt` names the dashboard's messages in
 * `_meta.interlude.messageIds`; a prompt without them comes from elsewhere.
 *
 * @see Agent Client Protocol v1, @agentclientprotocol/sdk 2.4.0
 */
export class AcpAdapter implements WireAdapter {
  readonly #options: AcpAdapterOptions;
  readonly #sessions = new Map<string, AcpSession>();
  /** Interlude's unanswered requests. */
  readonly #requests = new Map<string, { method: string; params: Fields }>();
  /** Frames about a session that arrive before the response that creates it. */
  #early: unknown[] = [];
  about: AgentAbout = { provider: null, profile: profileOf() };

  constructor(options: AcpAdapterOptions) {
    this.#options = options;
  }

  /** Settings of a session, by the agent's id. */
  settings(nativeId: string): Settings | null {
    return this.#sessions.get(nativeId)?.settings ?? null;
  }

  /** A person's messages in the replay of a loaded session. */
  replayed(nativeId: string): readonly string[] {
    return this.#sessions.get(nativeId)?.replay?.texts ?? [];
  }

  /** Expected end of a loaded session's replay; null until the response to the load. */
  replayEndsAt(nativeId: string): number | null {
    return this.#sessions.get(nativeId)?.replay?.endsAt ?? null;
  }

  /** Processes of tasks whose ends are reported by PROCESS_ENDED instead of the agent. */
  processes(nativeId: string): readonly number[] {
    return this.#sessions.get(nativeId)?.tasks.processes ?? [];
  }

  /** Open request with this id, as written; null if none. */
  openRequest(nativeId: string, id: unknown): RequestOpenedValue | null {
    return this.#sessions.get(nativeId)?.requests.get(rpcKey(id) ?? '') ?? null;
  }

  read({ dir, msg: raw }: WireFrame, now: number): EmittedEvent[] {
    const msg = boundFrame(raw);
    for (const session of this.#sessions.values()) session.writer.at(now);
    const frame = rpcFrame(msg);
    if (frame.kind === 'unreadable') this.#forward(msg, null);
    else if (frame.kind === 'answer') {
      const { key, result, error } = frame;
      if (dir === 'in') this.#responded(key, result, error, msg, now);
      else for (const session of this.#sessions.values()) session.answers(key, result, error);
    } else if (dir === 'out') {
      const key = frame.kind === 'request' ? frame.key : null;
      this.#sent(key, frame.method, frame.params, now);
    } else if (frame.kind === 'request') this.#asks(frame.key, frame.method, frame.params, msg, now);
    else this.#notified(frame.method, frame.params, msg, now);
    return this.#take();
  }

  get dueAt(): number | null {
    return earliest([...this.#sessions.values()].map(({ dueAt }) => dueAt));
  }

  elapsed(now: number): EmittedEvent[] {
    for (const session of this.#sessions.values()) {
      session.writer.at(Math.min(now, session.dueAt ?? now));
      session.elapsed(now);
    }
    return this.#take();
  }

  ended(end: WireEnd, now: number): EmittedEvent[] {
    this.#requests.clear();
    for (const session of this.#sessions.values()) {
      session.writer.at(now);
      session.ended(end);
    }
    return this.#take();
  }

  #sent(key: string | null, method: string, params: Fields, now: number): void {
    if (key !== null) setBounded(this.#requests, key, { method, params }, MAX_PENDING);
    const id = textOf(params.sessionId);
    // The end of the previous process may be missing from the recording.
    if (method === 'initialize') for (const session of this.#sessions.values()) session.ended(RESTARTED);
    if (id === null) return;
    if (method === 'session/load' || method === 'session/resume') this.#open(id, now).replay = new Replay();
    const session = this.#sessions.get(id);
    if (method === 'session/prompt' && key !== null) this.#open(id, now).prompted(key, params, now);
    else if (method === 'session/cancel') session?.turns.cancelled();
    else if (method === PROCESS_ENDED) session?.tasks.processEnded(params.pid, params.wasSeen === true);
  }

  /** Handles the response to one of Interlude's requests. */
  #responded(key: string, result: Fields, error: RpcError | null, msg: unknown, now: number): void {
    const request = this.#requests.get(key);
    if (request === undefined) {
      this.#forward(msg, null);
      return;
    }
    this.#requests.delete(key);
    const { method, params } = request;
    const id = textOf(params.sessionId);
    const session = id === null ? undefined : this.#sessions.get(id);
    if (method === 'initialize' && error === null) this.#introduced(result);
    else if (method === 'session/prompt') {
      if (error !== null && isSessionLost(error, id)) session?.promptRejected(key, error, now);
      else session?.promptResponded(key, result, error, now);
    } else if (method === 'session/load' || method === 'session/resume') {
      if (error === null) session?.settings.opened(result);
      session?.replay?.responded(now);
    } else if (method === 'session/new') {
      const created = textOf(result.sessionId);
      if (created !== null) this.#open(created, now).settings.opened(result);
    } else if (error !== null) return;
    // Some agents also send the new mode as an update, others only respond.
    else if (method === 'session/set_mode') session?.modeChanged(params.modeId);
    else if (method === 'session/set_config_option')
      session?.update({ sessionUpdate: 'config_option_update', ...result }, msg, now);
  }

  #introduced(introduction: Fields): void {
    const { name, title, version } = fieldsOf(introduction.agentInfo);
    const called = textOf(title) ?? textOf(name);
    const provider = called === null ? null : [called, textOf(version)].filter(Boolean).join(' ');
    this.about = { provider, profile: profileOf(introduction) };
    for (const session of this.#sessions.values()) session.profile = this.about.profile;
  }

  #asks(key: string, method: string, params: Fields, msg: unknown, now: number): void {
    const session = this.#sessions.get(textOf(params.sessionId) ?? '');
    if (method === 'session/request_permission' && session !== undefined) session.permissionRequested(key, params, now);
    else if (method === '_qwencode/start_turn') {
      const taskIds = textsOf([params.taskId]);
      session?.turns.betweenRunStarted({ kind: taskIds.length === 0 ? 'unknown' : 'task', taskIds }, now);
    } else this.#forward(msg, session ?? null);
  }

  #notified(method: string, params: Fields, msg: unknown, now: number): void {
    const session = this.#sessions.get(textOf(params.sessionId) ?? '');
    if (session === undefined) this.#forward(msg, null);
    else if (method === 'session/update') session.update(fieldsOf(params.update), msg, now);
    else if (method === '_claude/sdkMessage') session.claude.message(fieldsOf(params.message), now);
    else if (method === '_qwencode/end_turn')
      session.turns.betweenRunEnded({ kind: params.reason === 'cancelled' ? 'cancelled' : 'success' });
    else this.#forward(msg, session);
  }

  /** Stores an unknown message in its session, else in the newest or first one. */
  #forward(msg: unknown, session: AcpSession | null): void {
    const home = session ?? [...this.#sessions.values()].at(-1);
    if (home !== undefined) home.raw(msg);
    else if (this.#early.length < MAX_EARLY) this.#early.push(msg);
  }

  #open(nativeId: string, now: number): AcpSession {
    const known = this.#sessions.get(nativeId);
    if (known !== undefined) return known;
    const session = new AcpSession({ ...this.#options, sessionId: this.#options.sessionOf(nativeId) });
    session.profile = this.about.profile;
    session.writer.at(now);
    setBounded(this.#sessions, nativeId, session, MAX_SESSIONS);
    const early = this.#early;
    this.#early = [];
    for (const msg of early) {
      const frame = rpcFrame(msg);
      if (frame.kind === 'notification') this.#notified(frame.method, frame.params, msg, now);
      else session.raw(msg);
    }
    return session;
  }

  #take(): EmittedEvent[] {
    return [...this.#sessions.values()].flatMap((session) => session.writer.drain());
  }
}
