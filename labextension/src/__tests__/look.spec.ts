import { BEGINNING, Places } from '../look';

const chosen = { ...BEGINNING, picked: true, run: 'r', step: 3 };

describe('what is chosen in each notebook', () => {
  it('is kept apart, and nothing is chosen in one that is new', () => {
    const places = new Places();
    places.keep('one.ipynb', chosen);

    expect(places.of('one.ipynb')).toEqual(chosen);
    expect(places.of('two.ipynb')).toEqual(BEGINNING);
  });

  it('goes along when the notebook is renamed, and is not there for one that comes under the old name', () => {
    const places = new Places();
    places.keep('one.ipynb', chosen);
    places.move('one.ipynb', 'two.ipynb');

    expect(places.of('two.ipynb')).toEqual(chosen);
    expect(places.of('one.ipynb')).toEqual(BEGINNING);
  });
});
