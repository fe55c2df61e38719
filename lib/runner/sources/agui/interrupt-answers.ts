import { CUSTOM } from '@interlude/protocol/ag-ui';
import { type Fields, fieldsOf, textOf } from '@interlude/protocol/fields';
import { QUESTION_TOOL } from '@interlude/protocol/request-options';
import { answerId } from '../../adapters/agui/agui-frames';
import type { ToldEvent } from '../../adapters/wire';
import { PendingRequests, type RequestAnswer } from '../../host/pending-requests';
import type { CommandOf } from '../../host/source';
import type { HistoryMessage } from './run-history';

/** An entry of `RunAgentInput.resume`. */
export interface ResumeEntry {
  interruptId: string;
  status: 'resolved' | 'cancelled';
  payload?: unknown;
}

/** What the next run of the agent is given. */
export interface GivenAnswer {
  resume: ResumeEntry[];
  messages: HistoryMessage[];
  /** What the conversation has of it from then on: the server adds it to that run by itself. */
  results: HistoryMessage[];
}

/**
 * What an agent has asked with the end of a run, and what people answer: by `resume` for an interrupt, by a `tool`
 * message for a call. One run answers all interrupts, because every one of them wants its answer in the next run.
 */
export class InterruptAnswers {
  readonly #sessionId: string;
  readonly #give: (answer: GivenAnswer) => void;
  readonly #held = new PendingRequests();
  /** Open interrupts, with the answers that there are. */
  readonly #interrupts = new Map<string, { callId: string | null; entry: ResumeEntry | null }>();

  /** @param give posts the run that answers */
  constructor(sessionId: string, give: (answer: GivenAnswer) => void) {
    this.#sessionId = sessionId;
    this.#give = give;
  }

  /** The agent takes nothing else before it has its answers. */
  get isWaiting(): boolean {
    return this.#interrupts.size > 0;
  }

  /** @returns why it was not given, or null */
  answer(command: CommandOf<'permission.decision' | 'question.answer'>): Promise<string | null> {
    return this.#held.answer(command);
  }

  told(told: readonly ToldEvent[]): void {
    for (const { event } of told) {
      if (event.type !== 'CUSTOM') continue;
      const value = fieldsOf(event.value);
      const id = textOf(value.request_id);
      if (id === null) continue;
      if (event.name === CUSTOM.requestOpened) this.#hold(id, value);
      else if (event.name === CUSTOM.requestResolved) {
        this.#held.release(this.#sessionId, id);
        this.#interrupts.delete(id);
      }
    }
  }

  /** The agent did not take them, and nothing waits any more. */
  forget(): void {
    this.#interrupts.clear();
    this.#held.clear();
  }

  #hold(requestId: string, { kind, tool_name: tool, tool_use_id: call, input }: Fields): void {
    // CopilotKit's interrupts have the ids of their calls, too.
    const isCall = call === requestId && tool === QUESTION_TOOL;
    if (!isCall) this.#interrupts.set(requestId, { callId: textOf(call), entry: null });
    this.#held.hold({
      sessionId: this.#sessionId,
      requestId,
      kind: kind === 'question' ? 'question' : 'permission',
      tool: textOf(tool),
      input: input ?? null,
      give: (answer) => {
        if (isCall) this.#answerCall(requestId, answer);
        else this.#answerInterrupt(requestId, answer);
        return null;
      },
    });
  }

  #answerCall(callId: string, answer: RequestAnswer): void {
    this.#give({ resume: [], messages: [toolResult(callId, answerText(answer))], results: [] });
  }

  #answerInterrupt(interruptId: string, answer: RequestAnswer): void {
    const entry: ResumeEntry = { interruptId, status: 'resolved', payload: interruptPayload(answer) };
    this.#interrupts.set(interruptId, { callId: this.#interrupts.get(interruptId)?.callId ?? null, entry });
    const answered = [...this.#interrupts.values()].flatMap(({ callId, entry: one }) =>
      one === null ? [] : [{ callId, entry: one }],
    );
    if (answered.length < this.#interrupts.size) return;
    const results = answered.flatMap(({ callId, entry: { payload } }) =>
      callId === null ? [] : [toolResult(callId, JSON.stringify(payload))],
    );
    this.#give({ resume: answered.map(({ entry: one }) => one), messages: [], results });
  }
}

function toolResult(toolCallId: string, content: string): HistoryMessage {
  return { id: answerId(toolCallId), role: 'tool', toolCallId, content };
}

/** A person's answer as the result of the call that asked. */
function answerText(answer: RequestAnswer): string {
  if (answer.kind === 'option') return answer.message ?? answer.optionId;
  if (answer.kind === 'permission') return answer.isAllowed ? 'yes' : (answer.message ?? 'no');
  const answers = Object.entries(answer.answers).map(([question, said]) => ({
    question,
    said: [said].flat().join(', '),
  }));
  if (answers.length === 1) return answers[0]?.said ?? '';
  return answers.map(({ question, said }) => `${question}: ${said}`).join('\n');
}

/** @see AG-UI 1.0.0: `approved` is what a tool approval is answered by */
function interruptPayload(answer: RequestAnswer): unknown {
  if (answer.kind === 'question') {
    const said = Object.values(answer.answers);
    return said.length === 1 ? said[0] : answer.answers;
  }
  const approved = answer.kind === 'permission' ? answer.isAllowed : true;
  return { approved, ...(answer.message === undefined ? {} : { message: answer.message }) };
}
