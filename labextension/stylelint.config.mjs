// Colours come from the theme alone, so that light, dark and high contrast come with it; nobody else's classes are
// touched; and what a browser would not understand is an error.
const MADE_UP = ['rgb', 'rgba', 'hsl', 'hsla', 'hwb', 'lab', 'lch', 'oklab', 'oklch', 'color'];
const THEME = ['/var\\(--jp-/', 'transparent', 'currentcolor', 'inherit'];

export default {
  rules: {
    'color-no-hex': true,
    'color-named': 'never',
    'function-disallowed-list': MADE_UP,
    'declaration-property-value-allowed-list': { '/color$/': THEME, '/^(fill|stroke)$/': [...THEME, 'none'] },
    'selector-class-pattern': '^(jp|lm)-',
    'block-no-empty': true,
    'color-no-invalid-hex': true,
    'declaration-block-no-duplicate-properties': true,
    'declaration-block-no-shorthand-property-overrides': true,
    'declaration-no-important': true,
    'font-family-no-missing-generic-family-keyword': true,
    'function-no-unknown': true,
    'media-feature-name-no-unknown': true,
    'named-grid-areas-no-invalid': true,
    'no-duplicate-at-import-rules': true,
    'no-duplicate-selectors': true,
    'no-invalid-double-slash-comments': true,
    'property-no-unknown': true,
    'selector-pseudo-class-no-unknown': true,
    'selector-pseudo-element-no-unknown': true,
    'selector-type-no-unknown': true,
    'unit-no-unknown': true
  },
  overrides: [
    {
      // In an output cell there may be no theme: here, and only here, the colours are that stand in for it.
      files: ['style/output.css'],
      rules: {
        'color-no-hex': null,
        'declaration-property-value-allowed-list': null,
        'no-duplicate-selectors': null
      }
    }
  ]
};
