import { appendFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { type MirrorState, parseMirrorState } from '@interlude/runner/sources/hooks/mirror-state';
import { SessionMirror } from '@interlude/runner/sources/hooks/session-mirror';
import { tempDir } from './temp-dir';

/** A scripted terminal session with its clock and mirror. Lines have the time `now` unless given. */
export class ScriptedTerminal {
  now = Date.parse('2026-11-20T12:00:00Z');
  mirror: SessionMirror;
  readonly events: AgUiEvent[] = [];
  /** Messages that the agent has received by the transcript. */
  readonly handed: string[] = [];
  /** Messages that the agent had received at the end of each turn. */
  readonly inHandAtEnds: string[][] = [];
  readonly file: string;
  #stored: MirrorState | null = null;
  #parentUuid: string | null = null;
  #lines = 0;

  private constructor(file: string) {
    this.file = file;
    writeFileSync(file, '');
    this.mirror = this.#follow();
  }

  static async begin(): Promise<ScriptedTerminal> {
    return new ScriptedTerminal(join(await tempDir(), 's.jsonl'));
  }

  /** Kills the companion and starts a new one. */
  async takeOver(): Promise<void> {
    this.mirror = this.#follow();
    await this.mirror.step();
  }

  async pass(ms: number): Promise<void> {
    this.now += ms;
    await this.mirror.step();
  }

  claim(at = this.now) {
    return { at, promptId: null };
  }

  line(type: string, message: object, more: object = {}, at = this.now): void {
    this.#lines += 1;
    const uuid = `${type.slice(0, 1)}${this.#lines}`;
    const about = { parentUuid: this.#parentUuid, type, uuid, timestamp: new Date(at).toISOString() };
    this.#parentUuid = uuid;
    appendFileSync(this.file, `${JSON.stringify({ ...about, message, ...more })}\n`);
  }

  asks(at = this.now): void {
    this.line('user', { role: 'user', content: 'Go' }, { origin: { kind: 'human' } }, at);
  }

  says(text: string, at = this.now, more: object = {}): void {
    const message = { id: `m${this.#lines}`, stop_reason: 'end_turn', content: [{ type: 'text', text }] };
    this.line('assistant', message, more, at);
  }

  isHeld(reason: string, at = this.now): void {
    this.line('user', { role: 'user', content: `Stop hook feedback:\n${reason}` }, { isMeta: true }, at);
  }

  /** A stop hook adds context without blocking; the turn continues. */
  isTold(text: string, at = this.now): void {
    const attachment = { type: 'hook_additional_context', content: [text], hookName: 'Stop', hookEvent: 'Stop' };
    this.line('attachment', {}, { attachment }, at);
  }

  isOver(at = this.now): void {
    this.line('system', {}, { subtype: 'turn_duration', durationMs: 5 }, at);
  }

  /** The agent's texts and the boundaries of runs. */
  get told(): string[] {
    return this.events.flatMap(({ type, delta }) => {
      if (type.startsWith('RUN_')) return [type];
      return typeof delta === 'string' && delta !== 'Go' ? [delta] : [];
    });
  }

  #follow(): SessionMirror {
    const mirror: SessionMirror = new SessionMirror({
      ...{ sessionId: 's', file: this.file, state: this.#stored, now: () => this.now },
      emit: (outputs, next) => {
        this.events.push(...outputs.map(({ event }) => event));
        this.#stored = parseMirrorState(JSON.stringify(next));
      },
      onDelivered: (ids) => void this.handed.push(...ids),
      onTurnEnded: () => void this.inHandAtEnds.push(['m1', 'm2'].filter((id) => mirror.isInFlight(id))),
      log: () => undefined,
    });
    return mirror;
  }
}
