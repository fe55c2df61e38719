import type { RequestOpenedValue, RequestOption, RequestResolvedValue } from '@interlude/protocol/ag-ui';
import { compact, type Fields, fieldsOf, isObject, listOf, textOf, textsOf } from '@interlude/protocol/fields';
import { truncateText } from '@interlude/protocol/text';
import { shownInput } from '../writer/shown-input';
import { type Decision, decisionsOf, ELICITED, grantsOf } from './decisions';
import { APPLY_PATCH, SHELL } from './items';

/**
 * A request of the app-server that a person answers. The others (`item/tool/call`, `currentTime/read`, …) are meant for
 * programs, and perhaps for another client.
 *
 * @see ServerRequest, `codex app-server generate-ts`, 0.171.0
 */
export interface AskedRequest {
  /** The request's own id on the wire. */
  rpcId: string | number;
  threadId: string;
  turnId: string | null;
  value: RequestOpenedValue;
  /** By option; none of a question. */
  decisions: readonly Decision[];
  /** Of a question. */
  fields: readonly AskedField[];
  /** What a question's answers, and its refusal, are to Codex. */
  isForm: boolean;
}

/** Above the request; the input below it says all. */
const MAX_CAPTION = 4_000;

/** One question of several. */
export interface AskedField {
  id: string;
  question: string;
  header: string;
  type: 'text' | 'number' | 'boolean' | 'texts';
}

/** @param changes of the `fileChange` item that is asked for */
export function askedIn(message: Fields, changes: unknown = undefined): AskedRequest | null {
  const { id: rpcId, method } = message;
  if ((typeof rpcId !== 'string' && typeof rpcId !== 'number') || typeof method !== 'string') return null;
  const { threadId, turnId, itemId, ...params } = fieldsOf(message.params);
  const thread = textOf(threadId);
  if (thread === null) return null;
  const item = textOf(itemId);
  const approval = textOf(params.approvalId);
  const place = { rpcId, threadId: thread, turnId: textOf(turnId), fields: [], isForm: false };
  const value = (kind: RequestOpenedValue['kind'], more: Partial<RequestOpenedValue>): RequestOpenedValue => ({
    request_id: [item ?? 'elicitation', approval ?? rpcId].join(':').slice(-256),
    kind,
    ...compact({ tool_use_id: item ?? undefined, ...more }),
  });
  const title = captionOf(params.reason) ?? undefined;
  switch (method) {
    case 'item/commandExecution/requestApproval': {
      const { command, availableDecisions: available } = params;
      const decisions = decisionsOf(available);
      const what = { tool_name: SHELL, title: title ?? captionOf(command) ?? undefined };
      return { ...place, decisions, value: value('permission', { ...what, ...shown(inputOf(params), decisions) }) };
    }
    case 'item/fileChange/requestApproval': {
      const decisions = decisionsOf(params.availableDecisions);
      const input = { ...inputOf(params), ...(changes === undefined ? {} : { changes }) };
      const what = { tool_name: APPLY_PATCH, title: title ?? pathsText(changes) };
      return { ...place, decisions, value: value('permission', { ...what, ...shown(input, decisions) }) };
    }
    case 'item/permissions/requestApproval': {
      const decisions = grantsOf(params.permissions);
      const what = { tool_name: 'request_permissions', title: title ?? 'More permissions' };
      return { ...place, decisions, value: value('permission', { ...what, ...shown(inputOf(params), decisions) }) };
    }
    case 'item/tool/requestUserInput': {
      const questions = listOf(params.questions).filter(isObject);
      const fields = questions.map(
        (question): AskedField => ({
          id: textOf(question.id) ?? '',
          question: textOf(question.question) ?? '',
          header: textOf(question.header) ?? '',
          type: 'text',
        }),
      );
      const title = captionOf(fields[0]?.question) ?? undefined;
      const what = { tool_name: 'request_user_input', title, input: shown(inputOf(params), []).input };
      return { ...place, decisions: [], fields, value: value('question', what) };
    }
    case 'mcpServer/elicitation/request':
      return elicited(params, place, value);
    default:
      return null;
  }
}

/** How a request was answered, by the `result` that Interlude sent. */
export function outcomeOf(result: unknown): RequestResolvedValue['outcome'] {
  const { decision, permissions, answers, action } = fieldsOf(result);
  if (answers !== undefined) return Object.keys(fieldsOf(answers)).length > 0 ? 'answered' : 'denied';
  if (permissions !== undefined) return Object.keys(fieldsOf(permissions)).length > 0 ? 'allowed' : 'denied';
  if (action !== undefined) return action === 'accept' ? 'allowed' : 'denied';
  if (decision === 'decline' || decision === 'cancel') return 'denied';
  const amendment = fieldsOf(fieldsOf(fieldsOf(decision).applyNetworkPolicyAmendment).network_policy_amendment);
  if (amendment.action === 'deny') return 'denied';
  return decision === undefined ? 'unknown' : 'allowed';
}

function elicited(
  params: Fields,
  place: Omit<AskedRequest, 'value' | 'decisions'>,
  value: (kind: RequestOpenedValue['kind'], more: Partial<RequestOpenedValue>) => RequestOpenedValue,
): AskedRequest {
  const server = textOf(params.serverName) ?? 'MCP';
  const title = textOf(params.message) ?? textOf(params.title) ?? `${server} asks`;
  const properties = Object.entries(fieldsOf(fieldsOf(params.requestedSchema).properties));
  const { _meta: _, ...input } = params;
  const what = { tool_name: server, title };
  if (properties.length === 0) {
    return { ...place, decisions: ELICITED, value: value('permission', { ...what, ...shown(input, ELICITED) }) };
  }
  const fields = properties.map(([id, told]): AskedField => {
    const { title: name, description, type } = fieldsOf(told);
    const isNumber = type === 'number' || type === 'integer';
    const kind = isNumber ? 'number' : type === 'boolean' ? 'boolean' : type === 'array' ? 'texts' : 'text';
    return { id, header: textOf(name) ?? id, question: textOf(description) ?? textOf(name) ?? id, type: kind };
  });
  const questions = fields.map(({ id, question, header, type }, at) => ({
    id,
    question,
    header,
    multiSelect: type === 'texts',
    options: (type === 'boolean' ? ['yes', 'no'] : choicesOf(properties[at]?.[1])).map((label) => ({ label })),
  }));
  return {
    ...place,
    decisions: [],
    fields,
    isForm: true,
    value: value('question', { ...what, input: shown({ ...input, questions }, []).input }),
  };
}

function choicesOf(property: unknown): string[] {
  const { enum: choices, items } = fieldsOf(property);
  return textsOf(choices ?? fieldsOf(items).enum);
}

/** What people see of it: all that Codex says, but for what only programs read. */
function inputOf({ startedAtMs: _, approvalId: __, availableDecisions: ___, commandActions: ____, ...said }: Fields) {
  return compact(said);
}

function shown(input: object, decisions: readonly Decision[]): { input: unknown; options: RequestOption[] } {
  return shownInput(
    input,
    decisions.map(({ option }) => option),
  );
}

function pathsText(changes: unknown): string {
  const paths = listOf(changes).flatMap((change) => textOf(fieldsOf(change).path) ?? []);
  return paths.length === 0 ? 'Change files' : truncateText(`Change ${paths.join(', ')}`, MAX_CAPTION);
}

function captionOf(text: unknown): string | null {
  const said = textOf(text);
  return said === null ? null : truncateText(said, MAX_CAPTION);
}
