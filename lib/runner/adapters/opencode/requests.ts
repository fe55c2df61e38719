import type { RequestOpenedValue, RequestOption } from '@interlude/protocol/ag-ui';
import { type Fields, fieldsOf, listOf, textOf, textsOf } from '@interlude/protocol/fields';
import { truncateText } from '@interlude/protocol/text';
import { shownInput } from '../writer/shown-input';
import { fittingValue } from './fitting-value';

/** How a permission can be answered: what `POST /permission/:id/reply` takes as `reply`. */
export type PermissionReply = 'once' | 'always' | 'reject';

const MAX_TITLE = 500;

/** @param asked as `permission.asked` and `GET /permission` tell it */
export function permissionOf(asked: Fields, about: { id: string; callId: string | null; by: string | null }) {
  const permission = truncateText(textOf(asked.permission) ?? textOf(asked.type) ?? 'permission', 100);
  const { command, title, filepath, description } = fieldsOf(asked.metadata);
  const what = [command, title, filepath, description].map(textOf).find(Boolean) ?? textsOf(asked.patterns).join(', ');
  return {
    request_id: about.id,
    kind: 'permission',
    ...(about.callId === null ? {} : { tool_use_id: about.callId }),
    tool_name: permission,
    title: titleOf(`${permission}: ${what}`, about.by),
    ...shownInput(
      { patterns: asked.patterns ?? [], always: asked.always ?? [], metadata: asked.metadata ?? {} },
      optionsOf(textsOf(asked.always)),
    ),
  } satisfies RequestOpenedValue;
}

function optionsOf(always: string[]): RequestOption[] {
  const what = always.length === 0 ? '' : ` (${always.join(', ')})`;
  return [
    { id: 'once', label: 'Allow once', kind: 'allow' },
    { id: 'always', label: truncateText(`Always allow${what}`, 200), kind: 'allow', isLasting: true },
    { id: 'reject', label: 'Reject; this stops the turn, unless you say what to do instead', kind: 'deny' },
  ] satisfies (RequestOption & { id: PermissionReply })[];
}

/** @param asked as `question.asked` and `GET /question` tell it */
export function questionOf(asked: Fields, about: { id: string; callId: string | null; by: string | null }) {
  const questions = listOf(asked.questions).map((one) => {
    const { multiple, ...rest } = fieldsOf(one);
    return { ...rest, multiSelect: multiple === true };
  });
  const first = textOf(fieldsOf(questions[0]).question) ?? 'The agent asks';
  return {
    request_id: about.id,
    kind: 'question',
    ...(about.callId === null ? {} : { tool_use_id: about.callId }),
    tool_name: 'question',
    title: titleOf(first, about.by),
    input: fittingValue({ questions }),
  } satisfies RequestOpenedValue;
}

function titleOf(text: string, by: string | null): string {
  const whose = by === null ? '' : ` (asked by the subagent “${truncateText(by, 100)}”)`;
  return truncateText(text, MAX_TITLE) + whose;
}
