import type { RequestOpenedValue, RequestOption, RequestResolvedValue } from '@interlude/protocol/ag-ui';
import { compact, type Fields, fieldsOf, isObject, listOf, textOf, textsOf } from '@interlude/protocol/fields';
import { MAX_OPTION_LABEL, MAX_OPTIONS } from '@interlude/protocol/limits';
import { truncateText } from '@interlude/protocol/text';
import { setBounded } from '../wire';
import { displayInput } from '../writer/size-limits';
import { APPLY_PATCH, SHELL } from './items';

/**
 * An app-server request that a person answers. Others (`item/tool/call`, `currentTime/read`, …) are for programs.
 *
 * @see ServerRequest, `codex app-server generate-ts`, 0.171.0
 */
export interface CodexRequest {
  /** JSON-RPC id. */
  rpcId: string | number;
  threadId: string;
  turnId: string | null;
  value: RequestOpenedValue;
  /** One per option; empty for a question. */
  decisions: readonly Decision[];
  /** Only for questions. */
  fields: readonly QuestionField[];
  /** True if it is answered and declined as an MCP elicitation form. */
  isForm: boolean;
}

/** Title length; the input below it is complete. */
const MAX_CAPTION = 4_000;

export interface QuestionField {
  id: string;
  question: string;
  header: string;
  type: 'text' | 'number' | 'boolean' | 'texts';
}

/** @param changes of the `fileChange` item it is about */
export function parseRequest(message: Fields, changes: unknown = undefined): CodexRequest | null {
  const { id: rpcId, method } = message;
  if ((typeof rpcId !== 'string' && typeof rpcId !== 'number') || typeof method !== 'string') return null;
  const { threadId, turnId, itemId, ...params } = fieldsOf(message.params);
  const thread = textOf(threadId);
  if (thread === null) return null;
  const item = textOf(itemId);
  const approval = textOf(params.approvalId);
  const common = { rpcId, threadId: thread, turnId: textOf(turnId), fields: [], isForm: false };
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
      const details = { tool_name: SHELL, title: title ?? captionOf(command) ?? undefined };
      return { ...common, decisions, value: value('permission', { ...details, ...shown(inputOf(params), decisions) }) };
    }
    case 'item/fileChange/requestApproval': {
      const decisions = decisionsOf(params.availableDecisions);
      const input = { ...inputOf(params), ...(changes === undefined ? {} : { changes }) };
      const details = { tool_name: APPLY_PATCH, title: title ?? pathsText(changes) };
      return { ...common, decisions, value: value('permission', { ...details, ...shown(input, decisions) }) };
    }
    case 'item/permissions/requestApproval': {
      const decisions = grantsOf(params.permissions);
      const details = { tool_name: 'request_permissions', title: title ?? 'More permissions' };
      return { ...common, decisions, value: value('permission', { ...details, ...shown(inputOf(params), decisions) }) };
    }
    case 'item/tool/requestUserInput': {
      const questions = listOf(params.questions).filter(isObject);
      const fields = questions.map(
        (question): QuestionField => ({
          id: textOf(question.id) ?? '',
          question: textOf(question.question) ?? '',
          header: textOf(question.header) ?? '',
          type: 'text',
        }),
      );
      const title = captionOf(fields[0]?.question) ?? undefined;
      const details = { tool_name: 'request_user_input', title, input: shown(inputOf(params), []).input };
      return { ...common, decisions: [], fields, value: value('question', details) };
    }
    case 'mcpServer/elicitation/request':
      return elicited(params, common, value);
    default:
      return null;
  }
}

/** Outcome of the `result` that Interlude sent. */
function outcomeOf(result: unknown): RequestResolvedValue['outcome'] {
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
  common: Omit<CodexRequest, 'value' | 'decisions'>,
  value: (kind: RequestOpenedValue['kind'], more: Partial<RequestOpenedValue>) => RequestOpenedValue,
): CodexRequest {
  const server = textOf(params.serverName) ?? 'MCP';
  const title = textOf(params.message) ?? textOf(params.title) ?? `${server} asks`;
  const properties = Object.entries(fieldsOf(fieldsOf(params.requestedSchema).properties));
  const { _meta: _, ...input } = params;
  const details = { tool_name: server, title };
  if (properties.length === 0) {
    return {
      ...common,
      decisions: ELICITATION_DECISIONS,
      value: value('permission', { ...details, ...shown(input, ELICITATION_DECISIONS) }),
    };
  }
  const fields = properties.map(([id, entry]): QuestionField => {
    const { title: name, description, type } = fieldsOf(entry);
    const isNumber = type === 'number' || type === 'integer';
    const kind = isNumber ? 'number' : type === 'boolean' ? 'boolean' : type === 'array' ? 'texts' : 'text';
    return { id, header: textOf(name) ?? id, question: textOf(description) ?? textOf(name) ?? id, type: kind };
  });
  const questions = fields.map(({ id, question, header, type }, index) => ({
    id,
    question,
    header,
    multiSelect: type === 'texts',
    options: (type === 'boolean' ? ['yes', 'no'] : choicesOf(properties[index]?.[1])).map((label) => ({ label })),
  }));
  return {
    ...common,
    decisions: [],
    fields,
    isForm: true,
    value: value('question', { ...details, input: shown({ ...input, questions }, []).input }),
  };
}

function choicesOf(property: unknown): string[] {
  const { enum: choices, items } = fieldsOf(property);
  return textsOf(choices ?? fieldsOf(items).enum);
}

/** Input shown to people: everything but fields for programs. */
function inputOf({ startedAtMs: _, approvalId: __, availableDecisions: ___, commandActions: ____, ...input }: Fields) {
  return compact(input);
}

function shown(input: object, decisions: readonly Decision[]): { input: unknown; options: RequestOption[] } {
  return displayInput(
    input,
    decisions.map(({ option }) => option),
  );
}

function pathsText(changes: unknown): string {
  const paths = listOf(changes).flatMap((change) => textOf(fieldsOf(change).path) ?? []);
  return paths.length === 0 ? 'Change files' : truncateText(`Change ${paths.join(', ')}`, MAX_CAPTION);
}

function captionOf(text: unknown): string | null {
  const caption = textOf(text);
  return caption === null ? null : truncateText(caption, MAX_CAPTION);
}

export type RpcId = string | number;

interface Pending {
  request: CodexRequest;
  /** Outcome of Interlude's answer, if any. */
  outcome: RequestResolvedValue['outcome'] | null;
}

const MAX_KNOWN = 2_000;

/** Requests whose answers an app-server waits for, by JSON-RPC id (restarting from 0 in each process). */
export class PendingRequests {
  readonly #pending = new Map<RpcId, Pending>();
  /** `changes` of running `fileChange` items: their approval requests omit them. */
  readonly #changes = new Map<string, unknown>();

  /** @returns null if the request is not for people */
  open(rpcId: RpcId, message: Fields): CodexRequest | null {
    const request = parseRequest(message, this.#changes.get(textOf(fieldsOf(message.params).itemId) ?? ''));
    if (request !== null) setBounded(this.#pending, rpcId, { request, outcome: null }, MAX_KNOWN);
    return request;
  }

  get(rpcId: RpcId): CodexRequest | null {
    return this.#pending.get(rpcId)?.request ?? null;
  }

  /** Notes Interlude's answer. Another client may have been faster. */
  answered(rpcId: RpcId, result: unknown): void {
    const pending = this.#pending.get(rpcId);
    if (pending !== undefined && result !== undefined) pending.outcome = outcomeOf(result);
  }

  /** Removes a settled request. */
  remove(rpcId: RpcId): Pending | null {
    const pending = this.#pending.get(rpcId) ?? null;
    this.#pending.delete(rpcId);
    return pending;
  }

  /** @param turnId limits to this turn */
  of(threadId: string, turnId?: string): RpcId[] {
    return [...this.#pending].flatMap(([rpcId, { request }]) =>
      request.threadId === threadId && (turnId === undefined || request.turnId === turnId) ? [rpcId] : [],
    );
  }

  clear(): void {
    this.#pending.clear();
  }

  changes(itemId: string, changes: unknown): void {
    setBounded(this.#changes, itemId, changes, MAX_KNOWN);
  }

  itemEnded(itemId: string): void {
    this.#changes.delete(itemId);
  }
}

export function rpcIdOf(id: unknown): RpcId | null {
  return typeof id === 'string' || typeof id === 'number' ? id : null;
}

/** An answer Codex accepts, with the option that offers it. */
interface Decision {
  option: RequestOption;
  /** `result` of the response. */
  result: object;
}

/** Decisions of older versions, which list none. */
const USUAL = ['accept', 'acceptForSession', 'cancel'];

/** Answers to `item/commandExecution/requestApproval` and `item/fileChange/requestApproval`. */
export function decisionsOf(available: unknown): Decision[] {
  const listed = listOf(available);
  const offered = listed.length > 0 ? listed : USUAL;
  // Codex always accepts `decline`, although it does not list it: the turn continues without the action.
  const all = offered.includes('decline') ? offered : [...offered, 'decline'];
  const options: Decision[] = [];
  for (const decision of all.slice(-MAX_OPTIONS)) {
    const option = optionOf(decision, options.length);
    if (option !== null && !options.some(({ option: { id } }) => id === option.id)) {
      options.push({ option, result: { decision } });
    }
  }
  return options;
}

/** Answers to `item/permissions/requestApproval`. */
function grantsOf(permissions: unknown): Decision[] {
  return [
    { option: { id: 'turn', label: 'Allow for this turn', kind: 'allow' }, result: { permissions, scope: 'turn' } },
    {
      option: { id: 'session', label: 'Allow for this session', kind: 'allow', isLasting: true },
      result: { permissions, scope: 'session' },
    },
    { option: { id: 'decline', label: 'Deny', kind: 'deny' }, result: { permissions: {}, scope: 'turn' } },
  ];
}

/** Answers to an MCP server that only wants approval. */
const ELICITATION_DECISIONS: readonly Decision[] = [
  { option: { id: 'accept', label: 'Accept', kind: 'allow' }, result: { action: 'accept', content: {}, _meta: null } },
  {
    option: { id: 'decline', label: 'Decline', kind: 'deny' },
    result: { action: 'decline', content: null, _meta: null },
  },
];

function optionOf(decision: unknown, at: number): RequestOption | null {
  if (typeof decision === 'string') return named(decision);
  if (!isObject(decision)) return null;
  const [[name, entry] = []] = Object.entries(decision);
  if (name === undefined) return null;
  // Equal names can differ in content; the index makes the id unique and stable.
  const id = truncateText(`${name}:${at}`, 128);
  if (name === 'acceptWithExecpolicyAmendment') {
    const prefix = textsOf(fieldsOf(entry).execpolicy_amendment).join(' ');
    return {
      id,
      label: labelled(`Always allow commands that start with: ${prefix}`),
      kind: 'allow',
      isLasting: true,
    };
  }
  if (name === 'applyNetworkPolicyAmendment') {
    const { host, action } = fieldsOf(fieldsOf(entry).network_policy_amendment);
    const kind = action === 'allow' ? 'allow' : 'deny';
    const verb = kind === 'allow' ? 'Allow' : 'Deny';
    return { id, label: labelled(`${verb} ${textOf(host) ?? 'this host'} from now on`), kind, isLasting: true };
  }
  return { id, label: labelled(name), kind: name.startsWith('accept') ? 'allow' : 'deny', isLasting: true };
}

function named(id: string): RequestOption | null {
  switch (id) {
    case '':
      return null;
    case 'accept':
      return { id, label: 'Allow', kind: 'allow' };
    case 'acceptForSession':
      return { id, label: 'Allow for this session', kind: 'allow', isLasting: true };
    case 'decline':
      return { id, label: 'Deny', kind: 'deny' };
    case 'cancel':
      return { id, label: 'Deny and end the turn', kind: 'deny' };
    default:
      return { id: truncateText(id, 128), label: labelled(id), kind: id.startsWith('accept') ? 'allow' : 'deny' };
  }
}

function labelled(text: string): string {
  return truncateText(text, MAX_OPTION_LABEL);
}
