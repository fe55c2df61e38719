import { renderToStaticMarkup } from 'react-dom/server';
import { expect, it } from 'vitest';
import { Markdown } from '@/components/ui/markdown/markdown';

const shown = (source: string) => renderToStaticMarkup(<Markdown text={source} />);
const target = (source: string) => /⟨opens (.*?)⟩/.exec(shown(source))?.[1] ?? null;

it.each([
  ['[https://github.com/login](https://evil.test/)', 'evil.test'],
  ['[github.com](https://evil.test/)', 'evil.test'],
  ['[www.github.com](https://evil.test/)', 'evil.test'],
  ['[git**hub**.com](https://evil.test/)', 'evil.test'],
  ['[github&#46;com](https://evil.test/)', 'evil.test'],
  ['[Sign in at github.com.](https://evil.test/)', 'evil.test'],
  ['[github.com:443/x?y](https://evil.test/)', 'evil.test'],
  ['[github。com](https://evil.test/)', 'evil.test'],
  ['[`github.com`](https://evil.test/)', 'evil.test'],
  ['[github.com](https://github.com.evil.test/)', 'github.com.evil.test'],
  ['[docs.github.com](https://github.com/)', 'github.com'],
  ['[127.0.0.1](https://10.0.0.1:8080/)', '10.0.0.1:8080'],
  ['[http://localhost/](https://evil.test/)', 'evil.test'],
  ['[ada@example.test](mailto:eve@evil.test)', 'eve@evil.test'],
  ['[ada@example.test](https://evil.test/)', 'evil.test'],
  ['https://github.com@evil.test/', 'evil.test'],
  ['<https://github.com:secret@evil.test/a>', 'evil.test'],
  ['[docs](https://github.com@evil.test/)', 'evil.test'],
  ['![github.com](https://evil.test/a.png)', 'evil.test'],
  ['[аррӏе.com](https://xn--80ak6aa92e.com/)', 'xn--80ak6aa92e.com'],
  ['[аррӏе.com](https://аррӏе.com/)', 'xn--80ak6aa92e.com'],
])('a link says where it leads: %s', (source, host) => {
  expect(target(source)).toBe(host);
});

it.each([
  '[docs](https://example.test/a)',
  '[The docs of Node.js](https://nodejs.org/)',
  '[package.json](https://github.com/a/b/blob/main/package.json)',
  '[README.md](https://github.com/a/b/blob/main/README.md)',
  '[github.com](https://github.com/a)',
  '[github.com](https://gist.github.com/a)',
  '[www.github.com](https://github.com/a)',
  '[https://github.com/a?b=c](https://github.com/a?b=c)',
  '<https://example.test/a>',
  'https://example.test/a.',
  '[ada@example.test](mailto:ada@example.test)',
  '[xn--80ak6aa92e.com](https://xn--80ak6aa92e.com/)',
  '[v1.2.3](https://example.test/releases)',
  '[e.g. this](https://example.test/)',
])('a link whose text is no other address stays as it is: %s', (source) => {
  expect(target(source)).toBeNull();
});
