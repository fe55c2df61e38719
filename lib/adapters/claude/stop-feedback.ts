import { fieldsOf } from '@/lib/protocol/fields';

/** What a stop hook that holds the agent leaves in the transcript: the turn goes on. */
export function isStopFeedback(line: Record<string, unknown>): boolean {
  const { content } = fieldsOf(line.message);
  return line.type === 'user' && line.isMeta === true && `${content}`.startsWith('Stop hook feedback:');
}
