import type { RequestOption } from '@interlude/protocol/ag-ui';
import { fieldsOf, isObject, listOf, textOf, textsOf } from '@interlude/protocol/fields';
import { MAX_OPTION_LABEL, MAX_OPTIONS } from '@interlude/protocol/limits';
import { truncateText } from '@interlude/protocol/text';

/** An answer that Codex takes, and as what people are offered it. */
export interface Decision {
  option: RequestOption;
  /** `result` of the answer. */
  result: object;
}

/** Of a request that does not list any, by older versions. */
const USUAL = ['accept', 'acceptForSession', 'cancel'];

/** What may be answered to `item/commandExecution/requestApproval` and `item/fileChange/requestApproval`. */
export function decisionsOf(available: unknown): Decision[] {
  const listed = listOf(available);
  const offered = listed.length > 0 ? listed : USUAL;
  // It is not listed and always taken: the turn goes on without what was asked for.
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

/** What may be answered to `item/permissions/requestApproval`. */
export function grantsOf(permissions: unknown): Decision[] {
  return [
    { option: { id: 'turn', label: 'Allow in this turn', kind: 'allow' }, result: { permissions, scope: 'turn' } },
    {
      option: { id: 'session', label: 'Allow in this session', kind: 'allow', isLasting: true },
      result: { permissions, scope: 'session' },
    },
    { option: { id: 'decline', label: 'Deny', kind: 'deny' }, result: { permissions: {}, scope: 'turn' } },
  ];
}

/** What may be answered to an MCP server that wants a person's yes, and nothing else. */
export const ELICITED: readonly Decision[] = [
  { option: { id: 'accept', label: 'Accept', kind: 'allow' }, result: { action: 'accept', content: {}, _meta: null } },
  {
    option: { id: 'decline', label: 'Decline', kind: 'deny' },
    result: { action: 'decline', content: null, _meta: null },
  },
];

function optionOf(decision: unknown, at: number): RequestOption | null {
  if (typeof decision === 'string') return named(decision);
  if (!isObject(decision)) return null;
  const [[name, told] = []] = Object.entries(decision);
  if (name === undefined) return null;
  // Two of a name differ in what they hold: the place tells them apart, in every telling of the request.
  const id = truncateText(`${name}:${at}`, 128);
  if (name === 'acceptWithExecpolicyAmendment') {
    const prefix = textsOf(fieldsOf(told).execpolicy_amendment).join(' ');
    return {
      id,
      label: labelled(`Allow, and from now on all that begins with: ${prefix}`),
      kind: 'allow',
      isLasting: true,
    };
  }
  if (name === 'applyNetworkPolicyAmendment') {
    const { host, action } = fieldsOf(fieldsOf(told).network_policy_amendment);
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
      return { id, label: 'Allow in this session', kind: 'allow', isLasting: true };
    case 'decline':
      return { id, label: 'Deny', kind: 'deny' };
    case 'cancel':
      return { id, label: 'Deny, and end the turn', kind: 'deny' };
    default:
      return { id: truncateText(id, 128), label: labelled(id), kind: id.startsWith('accept') ? 'allow' : 'deny' };
  }
}

function labelled(text: string): string {
  return truncateText(text, MAX_OPTION_LABEL);
}
