import type { FileEdit } from '@interlude/protocol/ag-ui';
import { fieldsOf, listOf, numberOf, textOf } from '@interlude/protocol/fields';

/**
 * Text of a content block; a placeholder for other types: `[image, image/png, 12 KB]`.
 * @see ACP v1, ContentBlock
 */
export function blockText(block: unknown): string {
  const { type, text, data, uri, name, title, mimeType, resource, size } = fieldsOf(block);
  switch (type) {
    case 'text':
      return typeof text === 'string' ? text : '';
    case 'image':
    case 'audio':
      return standIn(type, mimeType, base64Bytes(data));
    case 'resource_link':
      return standIn('link', textOf(title) ?? textOf(name), uri, mimeType, numberOf(size));
    case 'resource': {
      const embedded = fieldsOf(resource);
      if (typeof embedded.text === 'string') return embedded.text;
      return standIn('resource', embedded.uri, embedded.mimeType, base64Bytes(embedded.blob));
    }
    default:
      return typeof type === 'string' ? standIn(type) : '';
  }
}

export function promptText(blocks: unknown): string {
  return listOf(blocks)
    .map(blockText)
    .filter((text) => text !== '')
    .join('\n');
}

interface CallContent {
  text: string;
  edits: FileEdit[];
}

/** Text and edits of a tool call. @see ACP v1, ToolCallContent */
export function callContent(content: unknown): CallContent {
  const texts: string[] = [];
  const edits: FileEdit[] = [];
  for (const one of listOf(content)) {
    const { type, content: block, path, oldText, newText, terminalId } = fieldsOf(one);
    if (type === 'diff') {
      const file = textOf(path) ?? '(unnamed file)';
      edits.push({ path: file, before: textOf(oldText) ?? '', after: textOf(newText) ?? '' });
    } else if (type === 'terminal') texts.push(standIn('terminal', terminalId));
    else texts.push(blockText(block));
  }
  return { text: unfenced(texts.filter((text) => text !== '').join('\n')), edits };
}

/** Text of a call's raw output, used if its content is empty. */
export function outputText(rawOutput: unknown): string {
  if (typeof rawOutput === 'string') return rawOutput;
  if (Array.isArray(rawOutput)) return rawOutput.map(blockText).join('\n');
  const { formatted_output, aggregated_output, output, content, text } = fieldsOf(rawOutput);
  const found = [formatted_output, aggregated_output, output, content, text].find((one) => typeof one === 'string');
  if (typeof found === 'string') return found;
  return rawOutput === undefined || rawOutput === null ? '' : JSON.stringify(rawOutput);
}

function standIn(...parts: unknown[]): string {
  const words = parts.map((part) => (typeof part === 'number' ? size(part) : textOf(part))).filter(Boolean);
  return `[${words.join(', ')}]`;
}

function base64Bytes(data: unknown): number | null {
  return typeof data === 'string' && data !== '' ? Math.floor((data.length * 3) / 4) : null;
}

function size(bytes: number): string {
  return bytes < 1024 ? `${bytes} bytes` : `${Math.round(bytes / 1024).toLocaleString('en')} KB`;
}

/** Strips a code fence meant for Markdown clients. */
function unfenced(text: string): string {
  const fenced = /^```(?:console)?\n([\s\S]*?)\n?```$/.exec(text);
  return fenced?.[1] !== undefined && !fenced[1].includes('\n```') ? fenced[1] : text;
}
