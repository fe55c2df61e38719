import { fieldsOf } from '@/lib/protocol/fields';

/**
 * Which programs an agent is made of, as its status record says it.
 * @returns as they are shown, in order; empty where it says nothing
 */
export function versionsOf(status: Record<string, unknown> | null): { of: string; text: string }[] {
  const { runner, protocol, provider } = fieldsOf(status?.versions);
  return [
    { of: 'runner', text: isText(runner) ? `runner ${runner}` : '' },
    { of: 'protocol', text: isText(protocol) ? `protocol ${protocol}` : '' },
    { of: 'provider', text: isText(provider) ? provider : '' },
  ].filter(({ text }) => text !== '');
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.trim() !== '';
}
