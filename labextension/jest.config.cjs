// Nothing that imports JupyterLab is tested here, so Node is enough, and jsdom for the panel in an output cell; what
// people see is tested in a real browser (tests/browser).
module.exports = {
  testEnvironment: 'node',
  testRegex: 'src/__tests__/.*\\.spec\\.tsx?$',
  transform: { '^.+\\.tsx?$': ['ts-jest', { tsconfig: 'tsconfig.jest.json', diagnostics: false }] }
};
