import type { RequestOption } from './ag-ui';
import { isId, isObject } from './fields';
import { MAX_OPTION_LABEL, MAX_OPTIONS } from './limits';
import { truncateText } from './text';

/** The tool that Claude Code and similar agents use to ask a person. */
export const QUESTION_TOOL = 'AskUserQuestion';

/**
 * The answers that a request offers: at most MAX_OPTIONS, with labels truncated to MAX_OPTION_LABEL. If any is malformed
 * or duplicate, none are returned, because a person might have chosen the dropped one.
 */
export function readRequestOptions(value: unknown): RequestOption[] {
  if (!Array.isArray(value)) return [];
  const options: RequestOption[] = [];
  for (const entry of value.slice(0, MAX_OPTIONS)) {
    const option = optionOf(entry);
    if (option === null || options.some(({ id }) => id === option.id)) return [];
    options.push(option);
  }
  return options;
}

function optionOf(value: unknown): RequestOption | null {
  if (!isObject(value)) return null;
  const { id, label, kind, isLasting } = value;
  if (!isId(id) || typeof label !== 'string' || label.trim() === '') return null;
  if (kind !== 'allow' && kind !== 'deny') return null;
  return { id, label: truncateText(label, MAX_OPTION_LABEL), kind, ...(isLasting === true ? { isLasting } : {}) };
}

/** The option for a plain yes or no: if offered, one that holds only for this request. */
export function defaultOption(options: readonly RequestOption[], kind: RequestOption['kind']): RequestOption | null {
  const fitting = options.filter((option) => option.kind === kind);
  return (kind === 'allow' ? fitting.find(({ isLasting }) => isLasting !== true) : fitting[0]) ?? null;
}
