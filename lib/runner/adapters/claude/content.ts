import { fieldsOf, listOf, textOf } from '@interlude/protocol/fields';
import { truncateText } from '@interlude/protocol/text';

/** Limit of a tool result. A whole record is limited to 1 MiB of JSON, escapes included. */
const MAX_RESULT_CHARS = 200_000;
/** Largest block forwarded as the `rawEvent` of its stand-in. */
const MAX_RAW_CHARS = 16_384;

/** Placeholder for a non-text block: `[image: image/png, about 12 kB]`. */
export function standIn(block: unknown): string {
  const fields = fieldsOf(block);
  const type = textOf(fields.type) ?? 'content';
  const source = fieldsOf(fields.source);
  const data = textOf(source.data);
  const details = [
    textOf(fields.title) ?? textOf(fields.name) ?? textOf(fields.tool_name),
    textOf(source.media_type),
    textOf(source.url),
    data === null ? null : `about ${Math.max(1, Math.round((data.length * 3) / 4 / 1000))} kB`,
  ].filter((detail) => detail !== null);
  return details.length === 0 ? `[${type}]` : `[${type}: ${details.join(', ')}]`;
}

export function rawIfSmall(block: unknown): { rawEvent?: unknown } {
  const size = JSON.stringify(block)?.length ?? 0;
  return size > 0 && size <= MAX_RAW_CHARS ? { rawEvent: block } : {};
}

/** Joins the text of a message or tool result, one block a line. */
export function contentText(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return content === undefined || content === null ? '' : JSON.stringify(content);
  return content.map(blockText).join('\n');
}

export function hasStandIns(content: unknown): boolean {
  return listOf(content).some((block) => typeof fieldsOf(block).text !== 'string');
}

export function resultText(content: unknown): string {
  const text = contentText(content);
  if (text.length <= MAX_RESULT_CHARS) return text;
  return `${truncateText(text, MAX_RESULT_CHARS)}\n… ${text.length - MAX_RESULT_CHARS} more characters are not shown.`;
}

function blockText(block: unknown): string {
  const { text } = fieldsOf(block);
  return typeof text === 'string' ? text : typeof block === 'string' ? block : standIn(block);
}
