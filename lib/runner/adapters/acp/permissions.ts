import type { RequestOpenedValue, RequestOption, RequestResolvedValue } from '@interlude/protocol/ag-ui';
import { compact, type Fields, fieldsOf, listOf, textOf } from '@interlude/protocol/fields';
import { displayInput } from '../writer/size-limits';
import type { ToolCall } from './calls';
import { callContent } from './content';

/** A longer title may have been truncated, so it can't stand in for the input. */
const MAX_TITLE = 8 * 1024;
const MAX_OPTIONS = 20;

/** @see ACP v1, `session/request_permission` */
export function permissionOf(
  requestId: string,
  { toolCall, options }: Fields,
  call: ToolCall | null,
): RequestOpenedValue {
  const { title, content, rawInput } = fieldsOf(toolCall);
  const shown = callContent(content);
  const asked = rawInput ?? call?.rawInput ?? compact({ title: textOf(title), text: shown.text });
  const isWhole = rawInput !== undefined || call?.rawInput !== undefined || (textOf(title) ?? '').length <= MAX_TITLE;
  const { input, options: offered } = displayInput(asked, optionsOf(options), isWhole);
  return compact({
    request_id: requestId,
    kind: 'permission' as const,
    tool_use_id: call?.id,
    tool_name: call?.name,
    title: textOf(title) ?? undefined,
    input,
    options: offered.length > 0 ? offered : undefined,
  });
}

export function optionsOf(options: unknown): RequestOption[] {
  return listOf(options)
    .slice(0, MAX_OPTIONS)
    .flatMap((option) => {
      const { optionId, name, kind } = fieldsOf(option);
      const id = textOf(optionId);
      if (id === null) return [];
      const isAllowing = textOf(kind)?.startsWith('allow') === true;
      return [
        {
          id,
          label: textOf(name) ?? id,
          kind: isAllowing ? ('allow' as const) : ('deny' as const),
          ...(textOf(kind)?.endsWith('_always') === true ? { isLasting: true as const } : {}),
        },
      ];
    });
}

export type PermissionAnswer = { kind: 'option'; optionId: string } | { kind: 'cancelled' } | { kind: 'expired' };

/** Result for an answer. ACP lacks an outcome for a timeout, so `_meta` records it for the adapter. */
export function permissionResult(answer: PermissionAnswer, options: readonly RequestOption[] = []): Fields {
  if (answer.kind === 'option') return { outcome: { outcome: 'selected', optionId: answer.optionId } };
  if (answer.kind === 'cancelled') return { outcome: { outcome: 'cancelled' } };
  const denied = options.find(({ kind, isLasting }) => kind === 'deny' && isLasting !== true);
  const outcome = denied === undefined ? { outcome: 'cancelled' } : { outcome: 'selected', optionId: denied.id };
  return { outcome, _meta: { interlude: { expired: true } } };
}

/** Outcome of a result, given the request's options. */
export function outcomeOf(result: Fields, options: readonly RequestOption[]): RequestResolvedValue['outcome'] {
  if (fieldsOf(fieldsOf(result._meta).interlude).expired === true) return 'expired';
  const { outcome, optionId } = fieldsOf(result.outcome);
  if (outcome !== 'selected') return 'cancelled';
  const chosen = options.find(({ id }) => id === optionId);
  if (chosen === undefined) return 'unknown';
  return chosen.kind === 'allow' ? 'allowed' : 'denied';
}
