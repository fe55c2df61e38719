import type { Frame, SessionEventData } from '@interlude/protocol/frames';
import { comparePositions, type Position } from '@interlude/protocol/position';
import type { EventEntry } from '@interlude/protocol/projections/placement';
import { EMPTY_TRANSCRIPT, foldTranscript, type TranscriptState } from '@interlude/protocol/projections/transcript';
import type { AgentSummary, SessionSummary, Task } from '@interlude/protocol/read-models';
import { createParser } from 'eventsource-parser';
import { withDeadline } from './timeouts';

/**
 * A dashboard client that survives failures: resumes its stream by Last-Event-ID and runs the browser's projections.
 */
export class Watcher {
  /** Session events in order of arrival, over all connections. */
  readonly events: { position: Position; data: SessionEventData }[] = [];
  readonly logLines: string[] = [];
  readonly transcripts = new Map<string, TranscriptState>();
  readonly sessions = new Map<string, SessionSummary>();
  readonly agents = new Map<string, AgentSummary>();
  readonly tasks = new Map<string, Task>();
  /** Protocol violations. Must stay empty. */
  readonly wrongs: string[] = [];
  /** Reasons of `bye` frames. */
  readonly byes: string[] = [];
  connections = 0;
  #position: Position = '0';
  #reached: Position = '0';
  #failure: unknown = null;
  #phase: 'waiting to connect' | 'connecting' | 'reading' = 'waiting to connect';
  readonly #url: string;
  readonly #token: string;
  readonly #end = new AbortController();
  readonly #watchers = new Set<() => void>();
  readonly #pending = new Map<string, EventEntry[]>();

  constructor(server: { url: string; token: string }, topics: readonly string[]) {
    this.#url = `${server.url}/api/v1/stream?${topics.map((topic) => `topic=${encodeURIComponent(topic)}`).join('&')}`;
    this.#token = server.token;
    void this.#watch();
  }

  /** Resolves once everything up to `position` has arrived. */
  async reach(position: Position): Promise<void> {
    await this.until(() => comparePositions(this.#reached, position) >= 0);
  }

  async until(condition: () => boolean): Promise<void> {
    while (!condition()) {
      if (this.#failure) throw this.#failure;
      const changed = new Promise<void>((resolve) => this.#watchers.add(resolve));
      await withDeadline(() => this.standing(), changed);
    }
  }

  standing(): string {
    return `the watcher stands at ${this.#position}, ${this.#phase} (connection ${this.connections})`;
  }

  close(): void {
    this.#end.abort();
  }

  async #watch(): Promise<void> {
    try {
      while (!this.#end.signal.aborted) {
        this.#phase = 'connecting';
        await this.#connect();
        this.#phase = 'waiting to connect';
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    } catch (error) {
      this.#failure = error;
    }
    this.#notify();
  }

  /** Reads one connection until it breaks. */
  async #connect(): Promise<void> {
    const headers = { authorization: `Bearer ${this.#token}`, 'last-event-id': this.#position };
    const signal = this.#end.signal;
    const response = await fetch(this.#url, { headers, signal }).catch(() => null);
    if (response === null || response.status === 503) return; // the server is down or starting
    if (response.status !== 200) throw new Error(`the server refused the stream: ${await response.text()}`);
    this.connections += 1;
    this.#phase = 'reading';
    const decoder = new TextDecoder();
    const parser = createParser({
      onEvent: ({ id, event, data }) => this.#take({ id, event, data: JSON.parse(data) } as Frame),
    });
    try {
      for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
        parser.feed(decoder.decode(chunk, { stream: true }));
        this.#settle();
      }
    } catch {
      // cut off; complete frames have been processed
    }
    this.#settle();
  }

  #take(frame: Frame): void {
    if (frame.id !== undefined) {
      if (comparePositions(frame.id, this.#position) <= 0) {
        this.wrongs.push(`position ${frame.id} came after ${this.#position}`);
      }
      this.#position = frame.id;
      this.#reached = frame.id;
    }
    switch (frame.event) {
      case 'hello':
        if (frame.data.resume !== 'ok') this.wrongs.push(`resumed after ${this.#position} with a gap`);
        return;
      case 'session-event':
        this.#takeEvent(frame.id as Position, frame.data);
        return;
      case 'log':
        this.logLines.push(`${frame.data.agentId} ${frame.data.message}`);
        return;
      case 'session':
        this.sessions.set(frame.data.id, frame.data);
        return;
      case 'agent':
        this.agents.set(frame.data.id, frame.data);
        return;
      case 'task':
        this.tasks.set(`${frame.data.sessionId} ${frame.data.position}`, frame.data);
        return;
      case 'up-to-date':
        this.#reached = frame.data.position;
        return;
      case 'bye':
        this.byes.push(frame.data.reason);
    }
  }

  #takeEvent(position: Position, data: SessionEventData): void {
    this.events.push({ position, data });
    const { occurredAt, receivedAt, event, sessionId } = data;
    const waiting = this.#pending.get(sessionId) ?? [];
    waiting.push({ position, occurredAt, receivedAt, event });
    this.#pending.set(sessionId, waiting);
  }

  #settle(): void {
    for (const [sessionId, entries] of this.#pending) {
      this.transcripts.set(sessionId, foldTranscript(this.transcripts.get(sessionId) ?? EMPTY_TRANSCRIPT, entries));
    }
    this.#pending.clear();
    this.#notify();
  }

  #notify(): void {
    for (const tell of this.#watchers) tell();
    this.#watchers.clear();
  }
}
