import './base.css';
import './views.css';
