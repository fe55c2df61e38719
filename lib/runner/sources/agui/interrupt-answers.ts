import type { RequestOpenedValue } from '@interlude/protocol/ag-ui';
import { CUSTOM, QUESTION_TOOL } from '@interlude/protocol/event-fields';
import { fieldsOf } from '@interlude/protocol/fields';
import { answerId } from '../../adapters/agui/agui-frames';
import type { EmittedEvent } from '../../adapters/wire';
import { type AnswerCommand, PendingRequests, type RequestAnswer } from '../../host/pending-requests';
import type { HistoryMessage } from './run-history';

/** An entry of `RunAgentInput.resume`. */
export interface ResumeEntry {
  interruptId: string;
  status: 'resolved' | 'cancelled';
  payload?: unknown;
}

/** Input of the run that sends the answers. */
export interface AnswerInput {
  resume: ResumeEntry[];
  messages: HistoryMessage[];
  /** Results for the history only; the AG-UI server adds them to the run itself. */
  results: HistoryMessage[];
}

/**
 * Requests that ended a run, and their answers: `resume` for an interrupt, a `tool` message for a call. One run answers
 * all interrupts, because each must be answered in the next run.
 */
export class InterruptAnswers {
  readonly #post: (answer: AnswerInput) => void;
  readonly #requests = new PendingRequests();
  /** Open interrupts with their answers so far. */
  readonly #interrupts = new Map<string, { callId: string | null; entry: ResumeEntry | null }>();

  /** @param post posts the run with the answer */
  constructor(post: (answer: AnswerInput) => void) {
    this.#post = post;
  }

  /** True while interrupts are open: the agent accepts no message before all are answered. */
  get isWaiting(): boolean {
    return this.#interrupts.size > 0;
  }

  /** @returns the reason for a failure, or null */
  answer(command: AnswerCommand): Promise<string | null> {
    return this.#requests.answer(command);
  }

  observe(events: readonly EmittedEvent[]): void {
    for (const { event } of events) {
      const { request_id: id, tool_use_id: call } = fieldsOf(event.value) as Partial<RequestOpenedValue>;
      if (event.type !== 'CUSTOM' || id === undefined) continue;
      if (event.name === CUSTOM.requestResolved) this.#interrupts.delete(id);
      else if (event.name === CUSTOM.requestOpened && !isCall(event.value as RequestOpenedValue))
        this.#interrupts.set(id, { callId: call ?? null, entry: null });
    }
    this.#requests.observe(events, (answer, value) => {
      if (isCall(value)) this.#answerCall(value.request_id, answer);
      else this.#answerInterrupt(value.request_id, answer);
      return null;
    });
  }

  /** Drops all requests, because the agent refused the answers. */
  clear(): void {
    this.#interrupts.clear();
    this.#requests.clear();
  }

  #answerCall(callId: string, answer: RequestAnswer): void {
    this.#post({ resume: [], messages: [toolResult(callId, answerText(answer))], results: [] });
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
    this.#post({ resume: answered.map(({ entry: one }) => one), messages: [], results });
  }
}

/** True if a tool call opened the request. CopilotKit's interrupts use the ids of their calls. */
function isCall({ request_id, tool_use_id, tool_name }: RequestOpenedValue): boolean {
  return tool_use_id === request_id && tool_name === QUESTION_TOOL;
}

function toolResult(toolCallId: string, content: string): HistoryMessage {
  return { id: answerId(toolCallId), role: 'tool', toolCallId, content };
}

/** Answer as the result of a tool call. */
function answerText(answer: RequestAnswer): string {
  if (answer.kind === 'option') return answer.message ?? answer.optionId;
  if (answer.kind === 'permission') return answer.isAllowed ? 'yes' : (answer.message ?? 'no');
  const answers = Object.entries(answer.answers).map(([question, values]) => ({
    question,
    values: [values].flat().join(', '),
  }));
  if (answers.length === 1) return answers[0]?.values ?? '';
  return answers.map(({ question, values }) => `${question}: ${values}`).join('\n');
}

/** @see AG-UI 1.0.0: `approved` answers a tool approval */
function interruptPayload(answer: RequestAnswer): unknown {
  if (answer.kind === 'question') {
    const values = Object.values(answer.answers);
    return values.length === 1 ? values[0] : answer.answers;
  }
  const approved = answer.kind === 'permission' ? answer.isAllowed : true;
  return { approved, ...(answer.message === undefined ? {} : { message: answer.message }) };
}
