import { fieldsOf, listOf, textOf } from '@interlude/protocol/fields';
import type { HeldAnswer } from '../../host/held-requests';

/** A request to OpenCode that gives an answer. */
export interface AnswerRequest {
  path: string;
  body?: object;
}

/** @returns what gives the answer to OpenCode, or why it can't be given */
export function answerRequest(askedId: string, input: unknown, answer: HeldAnswer): AnswerRequest | string {
  const requestId = encodeURIComponent(askedId);
  if (answer.kind === 'option') {
    const { optionId, message } = answer;
    const said = message === undefined ? {} : { message };
    return { path: `/permission/${requestId}/reply`, body: { reply: optionId, ...said } };
  }
  if (answer.kind === 'permission') {
    return answer.isAllowed ? 'this is a question; answer it' : { path: `/question/${requestId}/reject` };
  }
  const answers: string[][] = [];
  for (const asked of listOf(fieldsOf(input).questions)) {
    const { question, options, custom } = fieldsOf(asked);
    const text = textOf(question) ?? '';
    const given = Object.hasOwn(answer.answers, text) ? answer.answers[text] : undefined;
    const chosen = given === undefined ? [] : [given].flat();
    const labels = listOf(options).map((option) => fieldsOf(option).label);
    const other = chosen.find((one) => !labels.includes(one));
    if (custom === false && other !== undefined) return `"${text}" takes only what it offers`;
    answers.push(chosen);
  }
  return { path: `/question/${requestId}/reply`, body: { answers } };
}
