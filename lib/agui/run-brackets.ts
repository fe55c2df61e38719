import type { AgUiEvent } from '@/lib/protocol/ag-ui';
import { idField } from '@/lib/protocol/event-fields';
import { textOf } from '@/lib/protocol/fields';
import type { StrictEvent } from './strict-event';

/** Most parts of one run whose speaker is remembered. Whoever comes after is not named. */
const MOST_OWNED = 10_000;

/** Most steps, subagents and spans of one run that are told. */
const MOST_BRACKETS = 10_000;

/**
 * What a run opens and must close besides messages, thoughts and calls: steps, subagents and spans of reasoning. And whose
 * each part is: to strict clients a part that is opened again for somebody else is a broken stream.
 */
export class RunBrackets {
  /** By kind and id, the subagent that speaks; null is the agent itself. */
  readonly owners = new Map<string, string | null>();
  readonly #steps = new Map<string, StrictEvent>();
  readonly #subagents = new Set<string>();
  readonly #seen = new Set<string>();
  readonly #spans = new Set<string>();
  #opened = 0;

  /** @returns by whom the part is opened, whoever opens it again */
  own(part: string, subagentRunId: string | null): string | null {
    const owner = this.owners.get(part);
    if (owner !== undefined) return owner;
    if (this.owners.size >= MOST_OWNED) return null;
    this.owners.set(part, subagentRunId);
    return subagentRunId;
  }

  /** @returns what to write; `left-out` if it begins what is open or ends what is not; `none` if it is no bracket */
  take(event: AgUiEvent): StrictEvent | 'left-out' | 'none' {
    const take = Object.hasOwn(this.#takes, event.type) ? this.#takes[event.type] : undefined;
    if (take === undefined) return 'none';
    const opens = /START/.test(event.type);
    if (opens && this.#opened >= MOST_BRACKETS) return 'left-out';
    const told = take(event, textOf(event.subagentRunId) ?? undefined);
    if (opens && told !== null) this.#opened += 1;
    return told ?? 'left-out';
  }

  /** Closes everything: what was opened last comes first. */
  ends(): StrictEvent[] {
    const spans = [...this.#spans].map((messageId) => ({ type: 'REASONING_END', messageId }));
    const steps = [...this.#steps.values()].map((started) => ({ ...started, type: 'STEP_FINISHED' }));
    const subagents = [...this.#subagents].map((subagentRunId) => ({ type: 'SUBAGENT_FINISHED', subagentRunId }));
    for (const open of [this.#spans, this.#steps, this.#subagents]) open.clear();
    return [...spans.reverse(), ...steps.reverse(), ...subagents.reverse()];
  }

  readonly #takes: Record<string, (event: AgUiEvent, subagentRunId: string | undefined) => StrictEvent | null> = {
    REASONING_START: (event, subagentRunId) => {
      const messageId = textOf(event.messageId);
      if (messageId === null || this.#spans.has(messageId)) return null;
      this.#spans.add(messageId);
      const owner = this.own(`reasoning:${messageId}`, subagentRunId ?? null) ?? undefined;
      return { type: 'REASONING_START', messageId, subagentRunId: owner };
    },
    REASONING_END: (event) => {
      const messageId = textOf(event.messageId);
      return messageId !== null && this.#spans.delete(messageId) ? { type: 'REASONING_END', messageId } : null;
    },
    STEP_STARTED: (event, subagentRunId) => {
      const stepName = idField(event, 'stepName');
      const key = stepKey(stepName, subagentRunId);
      if (stepName === null || this.#steps.has(key)) return null;
      const started = { type: 'STEP_STARTED', stepName, subagentRunId };
      this.#steps.set(key, started);
      return started;
    },
    STEP_FINISHED: (event, subagentRunId) => {
      const stepName = textOf(event.stepName);
      if (!this.#steps.delete(stepKey(stepName, subagentRunId))) return null;
      return { type: 'STEP_FINISHED', stepName, subagentRunId };
    },
    SUBAGENT_STARTED: (event, subagentRunId) => {
      // An id is one invocation: to strict clients it begins once.
      if (subagentRunId === undefined || this.#seen.has(subagentRunId)) return null;
      this.#subagents.add(subagentRunId);
      this.#seen.add(subagentRunId);
      const parent = textOf(event.parentSubagentRunId);
      return {
        type: 'SUBAGENT_STARTED',
        subagentRunId,
        name: textOf(event.name) ?? subagentRunId,
        description: textOf(event.description) ?? undefined,
        parentSubagentRunId: parent !== null && parent !== subagentRunId && this.#seen.has(parent) ? parent : undefined,
        parentToolCallId: textOf(event.parentToolCallId) ?? undefined,
        parentMessageId: textOf(event.parentMessageId) ?? undefined,
      };
    },
    SUBAGENT_FINISHED: (_event, subagentRunId) =>
      this.#endSubagent(subagentRunId) ? { type: 'SUBAGENT_FINISHED', subagentRunId } : null,
    SUBAGENT_ERROR: (event, subagentRunId) => {
      if (!this.#endSubagent(subagentRunId)) return null;
      const message = textOf(event.message) ?? 'The subagent failed.';
      return { type: 'SUBAGENT_ERROR', subagentRunId, message, code: textOf(event.code) ?? undefined };
    },
  };

  #endSubagent(id: string | undefined): boolean {
    return id !== undefined && this.#subagents.delete(id);
  }
}

/** A subagent may have a step of the same name as the agent. */
function stepKey(stepName: string | null, subagentRunId: string | undefined): string {
  return JSON.stringify([stepName, subagentRunId ?? null]);
}
