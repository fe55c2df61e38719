/** Half a character, of which a cut or an agent left the other half out. HTML can't carry it. For `replace`. */
export const LONE_SURROGATES = /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g;
