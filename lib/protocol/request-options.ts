import type { RequestOption } from './ag-ui';
import { isId, isObject } from './fields';
import { MAX_OPTION_LABEL, MAX_OPTIONS } from './limits';
import { truncateText } from './text';

/** The tool by which Claude Code, and agents made like it, ask a person. */
export const QUESTION_TOOL = 'AskUserQuestion';

/**
 * The answers that a request offers, as far as they can be told apart and sent back: at most MAX_OPTIONS of them, their
 * labels cut at MAX_OPTION_LABEL. A list with one that can't be is none, because what is left out of it may be what
 * somebody would have chosen.
 */
export function readRequestOptions(said: unknown): RequestOption[] {
  if (!Array.isArray(said)) return [];
  const options: RequestOption[] = [];
  for (const told of said.slice(0, MAX_OPTIONS)) {
    const option = optionOf(told);
    if (option === null || options.some(({ id }) => id === option.id)) return [];
    options.push(option);
  }
  return options;
}

function optionOf(told: unknown): RequestOption | null {
  if (!isObject(told)) return null;
  const { id, label, kind, isLasting } = told;
  if (!isId(id) || typeof label !== 'string' || label.trim() === '') return null;
  if (kind !== 'allow' && kind !== 'deny') return null;
  return { id, label: truncateText(label, MAX_OPTION_LABEL), kind, ...(isLasting === true ? { isLasting } : {}) };
}

/** What a decision chooses if its sender says no more than yes or no: what holds for this once, if that is offered. */
export function defaultOption(options: readonly RequestOption[], kind: RequestOption['kind']): RequestOption | null {
  const fitting = options.filter((option) => option.kind === kind);
  return (kind === 'allow' ? fitting.find(({ isLasting }) => isLasting !== true) : fitting[0]) ?? null;
}
