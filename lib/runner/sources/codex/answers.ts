import type { CodexRequest, QuestionField } from '../../adapters/codex/requests';
import type { HeldAnswer } from '../../host/held-requests';

/** @returns `result` as the app-server takes it, or why there is none */
export function resultOf(request: CodexRequest, answer: HeldAnswer): { result: object } | { refusal: string } {
  if (answer.kind === 'question') return answered(request, answer.answers);
  if (request.value.kind === 'question') {
    return { result: request.isForm ? { action: 'decline', content: null, _meta: null } : { answers: {} } };
  }
  const found =
    answer.kind === 'option'
      ? request.decisions.find(({ option }) => option.id === answer.optionId)
      : request.decisions.find(({ option }) => (option.kind === 'allow') === answer.isAllowed);
  return found === undefined ? { refusal: 'Codex does not offer this answer' } : { result: found.result };
}

function answered(
  { fields, isForm }: CodexRequest,
  answers: Record<string, string | string[]>,
): { result: object } | { refusal: string } {
  const said = fields.flatMap((field) => {
    const given = answers[field.question] ?? answers[field.header] ?? answers[field.id];
    return given === undefined ? [] : [{ field, texts: [given].flat() }];
  });
  if (said.length === 0) return { refusal: 'none of the questions was answered' };
  if (!isForm) {
    return { result: { answers: Object.fromEntries(said.map(({ field, texts }) => [field.id, { answers: texts }])) } };
  }
  const content = Object.fromEntries(said.map(({ field, texts }) => [field.id, typed(field, texts)]));
  return { result: { action: 'accept', content, _meta: null } };
}

/** As the form of an MCP server wants it; what is not of its type stays a text, which that server refuses by itself. */
function typed({ type }: QuestionField, texts: string[]): unknown {
  const text = texts.join(', ');
  if (type === 'texts') return texts;
  if (type === 'boolean') return /^(yes|true)$/i.test(text.trim());
  const value = Number(text);
  return type === 'number' && text.trim() !== '' && Number.isFinite(value) ? value : text;
}
