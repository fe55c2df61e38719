import { labelOf } from '@/components/ui/verbatim';

const ENTITIES: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', '#x27': "'" };

/** The visible text of rendered markup, with each labelled character decoded. */
export function renderedText(markup: string): string {
  const withoutButtons = markup
    .replace(/<button[\s\S]*?<\/button>/g, '')
    .replace(/<span data-origin[^>]*>⟨.*?⟩<\/span>/g, '')
    .replace(/<span class="text-ink-3">empty<\/span>/, '');
  let shown = '';
  for (const [, sign, tag, text] of withoutButtons.matchAll(
    /<span class="verbatim-sign[^>]*>⟨(.*?)⟩<\/span>|(<[^>]*>)|([^<]+)/g,
  )) {
    if (sign !== undefined) shown += textOfLabel(sign) ?? `(no sign: ${sign})`;
    else if (tag === undefined) shown += unescaped(text ?? '');
  }
  return shown;
}

export function unescaped(text: string): string {
  return text.replace(/&(amp|lt|gt|quot|#x27);/g, (whole, name: string) => ENTITIES[name] ?? whole);
}

const CODES = new Map(Array.from({ length: 0x10000 }, (_, code) => [labelOf(String.fromCharCode(code)), code]));

/** The character for a label, or null. */
export function textOfLabel(label: string): string | null {
  const [, name = '', times = '1'] = /^(.+?)(?: ×(\d+))?$/.exec(label) ?? [];
  const code = CODES.get(name) ?? (/^U\+[\dA-F]{4,6}$/.test(name) ? Number.parseInt(name.slice(2), 16) : null);
  return code === null ? null : String.fromCodePoint(code).repeat(Number(times));
}

/**
 * Characters that are invisible or change text direction. Excludes line breaks and tabs, which show where they apply.
 */
export const INVISIBLE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: matches control characters on purpose
  /[\x00-\x08\x0b-\x1f\x7f-\xa0\u061c\u115f\u1160\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufeff\uffa0\p{Cf}\p{Cs}\p{Variation_Selector}]/u;
